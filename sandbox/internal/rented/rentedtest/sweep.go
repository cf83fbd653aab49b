package rentedtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// holder is the role of a test's program that holds a sandbox until it is killed.
const holder = "rented-holder"

func init() { sandboxtest.Role(holder, hold) }

// hold opens a sandbox of the backend, state directory and settings that the arguments name.
func hold(args []string) error {
	options := sandbox.Options{StateDir: args[1]}
	if err := json.Unmarshal([]byte(args[2]), &options.Settings); err != nil {
		return err
	}
	b, err := sandbox.Open(args[0], options)
	if err != nil {
		return err
	}
	if _, err := b.Open(context.Background(), sandbox.Spec{ID: "held"}); err != nil {
		return err
	}
	return sandboxtest.Ready()
}

// Sweep checks what happens to a dead runner's machines. TestMain begins with sandboxtest.Init; start starts a server.
func Sweep[S Server](t *testing.T, name string, start func(testing.TB) (S, sandbox.Options)) {
	t.Run("killed", func(t *testing.T) {
		s, options := start(t)
		killed(t, name, s, options)
	})
	t.Run("knows its own", func(t *testing.T) {
		s, options := start(t)
		knowsItsOwn(t, name, s, options)
	})
}

// killed kills a runner; the next runner must end that one's machines, and no others.
func killed(t *testing.T, name string, s Server, options sandbox.Options) {
	sb := sandboxtest.Box(t, Open(t, name, options), sandbox.Spec{ID: "living"})
	settings, err := json.Marshal(options.Settings)
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Kill(t, sandboxtest.Runner(t, holder, name, options.StateDir, string(settings)))
	if n := s.Running(); n != 2 {
		t.Fatalf("%d machines run, want 2", n)
	}
	secrets := map[string]string{} // by environment variable
	for _, setting := range sandbox.Kinds()[name].Settings {
		if setting.Secret {
			secrets[setting.Env] = options.Settings[setting.Name]
		}
	}
	recordsNone(t, options.StateDir, secrets)
	// Without the secrets, the record stays for a runner that has them.
	if _, err := sandbox.Sweep(options.StateDir); err == nil {
		t.Error("swept without credentials")
	}
	for variable, secret := range secrets {
		t.Setenv(variable, secret)
	}
	for want := range 2 {
		removed, err := sandbox.Sweep(options.StateDir)
		if err != nil || len(removed) != 1-want {
			t.Errorf("sweep: got %v, %v", removed, err)
		}
	}
	Machines(t, s, 1) // the living runner's
	sandboxtest.Sh(t, sb, "true")
}

// recordsNone checks that no secret is in a state directory with two instances.
func recordsNone(t *testing.T, stateDir string, secrets map[string]string) {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(stateDir, "*", "*"))
	if err != nil || len(records) < 2 || len(secrets) == 0 {
		t.Fatalf("records %q, %v, of %d secrets", records, err, len(secrets))
	}
	for _, record := range records {
		content, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		for variable, secret := range secrets {
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s holds what belongs into %s", record, variable)
			}
		}
	}
}

// knowsItsOwn sweeps a record that names no machines.
func knowsItsOwn(t *testing.T, name string, s Server, options sandbox.Options) {
	sandboxtest.Box(t, Open(t, name, options), sandbox.Spec{ID: "living"})
	err := sandbox.Kinds()[name].Sweep(t.Context(), sandbox.Instance{Name: name + "-1", Settings: options.Settings})
	if err == nil || errors.Is(err, sandbox.ErrGone) || s.Running() != 1 {
		t.Errorf("got %v, and %d machines", err, s.Running())
	}
}
