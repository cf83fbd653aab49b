package docker_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox"
)

// TestLongErrors asks an engine that names a path of thousands of directories in its errors, as engines do that cannot remove one.
func TestLongErrors(t *testing.T) {
	for _, length := range []int{1 << 10, 60 << 10, 1000 << 10} {
		for _, kind := range []string{"application/json", "text/plain"} {
			said := []byte("unlinkat " + strings.Repeat("/d", length/2) + ": too many open files")
			if kind == "application/json" {
				said, _ = json.Marshal(map[string]string{"message": string(said)})
			}
			socket := filepath.Join(t.TempDir(), "s")
			listener, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", "1.44")
				if strings.HasSuffix(r.URL.Path, "/_ping") {
					return
				}
				w.Header().Set("Content-Type", kind)
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write(said)
			}))
			server.Listener = listener
			server.Start()
			host := (&url.URL{Scheme: "unix", Path: socket}).String()
			_, err = sandbox.Open("docker", sandbox.Options{StateDir: t.TempDir(), Settings: map[string]string{"host": host}})
			server.Close()
			if err == nil || len(err.Error()) > 5<<10 || !strings.Contains(err.Error(), "unlinkat /d/d") || !strings.Contains(err.Error(), "too many open files") {
				text := ""
				if err != nil {
					text = err.Error()
				}
				t.Errorf("%d bytes of %s: got %d bytes, %.200q...", length, kind, len(text), text)
			}
		}
	}
}
