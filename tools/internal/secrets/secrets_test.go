package secrets_test

import (
	"strings"
	"testing"

	"trajgen/tools/internal/secrets"
)

// The keys are put together here, so that no scanner of repositories takes them for real ones.
func TestIn(t *testing.T) {
	letters := "aB3dE5gH7jK9mN1pQ3sT5vX7z"
	for _, text := range []string{
		"sk-" + letters, "sk-proj-ab-c_" + letters, "sk-ant-api03-" + letters, "sk-or-v1-" + strings.Repeat("0af9", 16),
		"sk_" + "live_" + letters, "ghp_" + strings.Repeat("a1", 18), "github_pat_" + strings.Repeat("a1", 18), "glpat-" + letters,
		"xoxb-1234567890-" + letters, "AKIA" + "ABCDEFGHIJKLMNOP", "AIza" + letters + "0123456789", "hf_" + strings.Repeat("ab", 17),
		"npm_" + strings.Repeat("a1", 18), "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.x",
		"-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN+PRIVATE+KEY-----", "api_key=" + letters, `"password": "` + letters + `"`,
		"access-token = " + letters,
	} {
		if !secrets.In("before " + text + " after") {
			t.Errorf("In(%q) = false", text)
		}
	}
	for _, text := range []string{
		"", "sk-hynix-opens-a-new-memory-factory-in-2027", "task-force-abcdefghijklmnopqrstuvwxyz", "sk-sk", "ghp_short", "AKIA",
		"token", "password=hunter2", "page_token=CAUQAAabcdefghijklmnopq", "xoxo-gossip-girl-the-complete-series",
		"-----BEGIN CERTIFICATE-----", "api_key=DEMO_KEY", "eyJhbGciOiJIUzI1NiJ9", "akiaabcdefghijklmnop",
	} {
		if secrets.In(text) {
			t.Errorf("In(%q) = true", text)
		}
	}
}
