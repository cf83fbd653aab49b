package place_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools/browser/place"
	"trajgen/tools/browser/place/placetest"
)

// holder is the role of a runner that has a browser, or waits for one, until it is killed.
const holder = "place-holder"

func init() { sandboxtest.Role(holder, hold) }

// hold opens a browser; args are a place, its URL, a state directory, and wait for a runner that is killed while it waits.
func hold(args []string) error {
	p, err := place.Open(place.Config{
		Settings: place.Settings{Place: args[0], URL: args[1], KeyEnv: keyEnv},
		Getenv:   os.Getenv, Transport: http.DefaultTransport, Now: time.Now, StateDir: args[2],
	})
	if err != nil {
		return err
	}
	opened := make(chan error, 1)
	go func() {
		_, err := p.Open(context.Background())
		opened <- err
	}()
	if args[3] != "wait" {
		if err := <-opened; err != nil {
			return err
		}
	}
	return sandboxtest.Ready()
}

const keyEnv = "PLACE_TEST_KEY"

// TestKilled kills a runner that has a session, and one that waits for the answer about its own.
func TestKilled(t *testing.T) {
	for _, name := range place.Names() {
		if _, ok := created[name]; !ok {
			continue
		}
		for _, when := range []string{"open", "wait"} {
			t.Run(name+" "+when, func(t *testing.T) {
				server, stateDir := placetest.Start(t, name), t.TempDir()
				made := make(chan bool, 1)
				server.Make(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
					if when != "wait" || server.Made() > 0 {
						return false
					}
					serve(httptest.NewRecorder(), r)
					made <- true
					<-r.Context().Done()
					return true
				})
				t.Setenv(keyEnv, placetest.Key)
				runner := sandboxtest.Runner(t, holder, name, server.URL, stateDir, when)
				if when == "wait" {
					<-made
				}
				if live, err := sandbox.List(stateDir); err != nil || len(live) != 1 || live[0].Backend != "browser" {
					t.Errorf("list: %v, %v", live, err)
				}
				if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 0 {
					t.Errorf("sweep of the living: %v, %v", swept, err)
				}
				sandboxtest.Kill(t, runner)
				secretFree(t, stateDir)
				t.Setenv(keyEnv, "")
				if _, err := sandbox.Sweep(stateDir); err == nil && (when == "open" || named(name)) {
					t.Error("swept without the key")
				}
				t.Setenv(keyEnv, placetest.Key)
				if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) > 1 {
					t.Errorf("sweep: %v, %v", swept, err)
				}
				want := 0
				if when == "wait" && !named(name) { // whose session its time ends
					want = 1
				}
				if len(server.Running()) != want || len(sandboxtest.Instances(stateDir)) != 0 {
					t.Errorf("%d made, %v running, left %v", server.Made(), server.Running(), sandboxtest.Instances(stateDir))
				}
			})
		}
	}
}

// secretFree checks that no file below a state directory has the key.
func secretFree(t *testing.T, stateDir string) {
	t.Helper()
	for _, instance := range sandboxtest.Instances(stateDir) {
		entries, err := os.ReadDir(instance)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			content, err := os.ReadFile(instance + "/" + entry.Name())
			if err != nil || strings.Contains(string(content), placetest.Key) {
				t.Errorf("%s: %s, %v", entry.Name(), content, err)
			}
		}
	}
}

// TestManySwept has a runner's list of more sessions than are ended at once.
func TestManySwept(t *testing.T) {
	server, stateDir := placetest.Start(t, "steel"), t.TempDir()
	p := open(t, "steel", server.URL, stateDir, nil)
	var ids []string
	for range 30 {
		r, err := p.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	if names := listed(t, stateDir); !slices.Equal(names, ids) || !slices.Equal(server.Running(), ids) {
		t.Errorf("listed %v, running %v", names, server.Running())
	}
	if err := p.Close(); err != nil || len(server.Running()) != 0 || server.Ended() != 30 {
		t.Errorf("%v running, %d ended: %v", server.Running(), server.Ended(), err)
	}
}
