package ssh_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

func write(t testing.TB, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestHostKeys connects to hosts that are not who they should be.
func TestHostKeys(t *testing.T) {
	s, other := serve(t, Account{}), serve(t, Account{})
	address := s.Settings["host"][strings.IndexByte(s.Settings["host"], '@')+1:]
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := gossh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		known string
		want  string
	}{
		{"unknown", read(t, other.Settings["known_hosts"]), "is not in"},
		{"empty", "", "is not in"},
		{"another key", knownhosts.Line([]string{address}, stranger), "another machine may stand between"},
		{"revoked", "@revoked * " + strings.SplitN(read(t, s.Settings["known_hosts"]), " ", 2)[1], "revoked"},
	}
	for _, tt := range tests {
		if b, err := tryOpen(t, s, "known_hosts", write(t, tt.known)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want %q", tt.name, b, err, tt.want)
		}
	}
	if b, err := tryOpen(t, s, "known_hosts", "", "home", t.TempDir()); err == nil || !strings.Contains(err.Error(), "known_hosts") {
		t.Errorf("none: got %v, %v", b, err)
	}
	open(t, s, "known_hosts", "", "home", t.TempDir(), "insecure_host_key", "true")
}

// TestHostKeyKinds knows but one of the keys that a host has.
func TestHostKeyKinds(t *testing.T) {
	for _, kind := range []string{"ecdsa", "rsa", "ed25519"} {
		s := serve(t, Account{HostKeys: []string{"ecdsa", "rsa"}})
		var known []string
		for line := range strings.Lines(read(t, s.Settings["known_hosts"])) {
			if strings.Contains(line, kind) {
				known = append(known, line)
			}
		}
		if len(known) != 1 {
			t.Fatalf("got %q", known)
		}
		open(t, s, "known_hosts", write(t, known[0]))
	}
}

// TestHostCertificate trusts who signed the host's key.
func TestHostCertificate(t *testing.T) {
	s := serve(t, Account{Certificate: true})
	_, port, err := net.SplitHostPort(s.Settings["host"])
	if err != nil {
		t.Fatal(err)
	}
	open(t, s, "known_hosts", write(t, "@cert-authority [*]:"+port+" "+string(gossh.MarshalAuthorizedKey(s.Authority))))
	if b, err := tryOpen(t, s, "known_hosts", write(t, "@cert-authority [*.example.org]:"+port+" "+string(gossh.MarshalAuthorizedKey(s.Authority)))); err == nil {
		t.Errorf("got %v: the authority is not one for this host", b)
	}
}

func TestKeys(t *testing.T) {
	s := serve(t, Account{})
	private, err := gossh.ParseRawPrivateKey([]byte(read(t, s.Settings["identity_file"])))
	if err != nil {
		t.Fatal(err)
	}
	block, err := gossh.MarshalPrivateKeyWithPassphrase(*private.(*ed25519.PrivateKey), "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	locked := write(t, string(pem.EncodeToMemory(block)))

	// Where ssh itself would look.
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{s.Settings["identity_file"]: "id_ed25519", s.Settings["known_hosts"]: "known_hosts"} {
		if err := os.WriteFile(filepath.Join(home, ".ssh", to), []byte(read(t, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, s, "identity_file", "", "known_hosts", "", "home", home)

	open(t, s, "identity_file", locked, "passphrase", "secret")
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(home, "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = agent.ServeAgent(keyring, conn)
			}()
		}
	}()
	open(t, s, "identity_file", locked, "auth_sock", socket)
	open(t, s, "identity_file", "", "home", t.TempDir(), "auth_sock", socket)

	for want, settings := range map[string][]string{
		"passphrase":             {"identity_file", locked},
		"read the key":           {"identity_file", locked, "passphrase", "wrong"},
		"no such file":           {"identity_file", filepath.Join(home, "nowhere")},
		"no key to log in with":  {"identity_file", "", "home", t.TempDir(), "auth_sock", filepath.Join(home, "nowhere")},
		"unable to authenticate": {"host", "nobody-like-this" + s.Settings["host"][strings.IndexByte(s.Settings["host"], '@'):]},
	} {
		if b, err := tryOpen(t, s, settings...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %q", settings, b, err, want)
		}
	}
}

func TestSettings(t *testing.T) {
	s := serve(t, Account{})
	for _, tt := range []struct{ name, value, want string }{
		{"host", "", "setting host is missing"},
		{"host", "user@host:port", "is not [USER@]HOST[:PORT]"},
		{"host", "@host", "is not [USER@]HOST[:PORT]"},
		{"host", "a@host:0", "is not [USER@]HOST[:PORT]"},
		{"host", "a@127.0.0.1:1", "connect to 127.0.0.1:1"},
		{"jump", "a@b@", "setting jump"},
		{"isolation", "perfect", "have native, any"},
		{"insecure_host_key", "maybe", "neither true nor false"},
		{"directory", "relative", "is not an absolute path"},
		{"directory", "/quoted'; rm -rf /", "is not an absolute path"},
		{"known_hosts", "/no/such/file", "no such file"},
	} {
		if b, err := tryOpen(t, s, tt.name, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: got %v, %v, want %q", tt.name, tt.value, b, err, tt.want)
		}
	}
}
