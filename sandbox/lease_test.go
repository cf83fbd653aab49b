package sandbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

const leaseHolder = "lease-holder"

// ended is what the sweep of "rooms" was asked to end; failing is what it returns.
var (
	ended   []string
	failing error
)

func init() {
	sandbox.RegisterEnder("rooms", func(_ context.Context, names []string, settings map[string]string) error {
		for _, name := range names {
			ended = append(ended, settings["hotel"]+" "+name)
		}
		return failing
	})
	sandboxtest.Role(leaseHolder, func(args []string) error {
		lease, err := sandbox.OpenLease(args[0], "rooms", map[string]string{"hotel": "ritz"})
		if err == nil {
			err = errors.Join(lease.Add("b"), lease.Add("gone"), lease.Add("a"), lease.Remove("gone"))
		}
		if err != nil {
			return err
		}
		return sandboxtest.Ready()
	})
}

func TestLease(t *testing.T) {
	stateDir := t.TempDir()
	lease, err := sandbox.OpenLease(stateDir, "rooms", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Add("living"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "../x", "a/b", "a.b", string(make([]byte, 200))} {
		if lease.Add(name) == nil {
			t.Errorf("name %q: no error", name)
		}
	}
	if names, err := lease.Names(); err != nil || len(names) != 1 || names[0] != "living" {
		t.Errorf("names %v, %v", names, err)
	}
	sandboxtest.Kill(t, sandboxtest.Runner(t, leaseHolder, stateDir))
	failing = errors.New("no key")
	if swept, err := sandbox.Sweep(stateDir); !errors.Is(err, failing) || len(swept) != 0 {
		t.Errorf("a sweep that fails: %v, %v", swept, err)
	}
	failing = nil
	for want := range 2 {
		if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1-want {
			t.Errorf("sweep: %v, %v", swept, err)
		}
	}
	if diff := cmp.Diff([]string{"ritz a", "ritz b", "ritz a", "ritz b"}, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	if err := lease.Close(); err != nil || len(sandboxtest.Instances(stateDir)) != 0 {
		t.Errorf("left %v, %v", sandboxtest.Instances(stateDir), err)
	}
}
