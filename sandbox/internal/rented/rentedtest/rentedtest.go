// Package rentedtest has what the tests of renting backends share.
package rentedtest

import (
	"fmt"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// Server speaks the protocol of a service.
type Server interface {
	// Settings are the settings for a user of the server.
	Settings() map[string]string
	// Running returns the number of machines.
	Running() int
	// Close ends all machines and the server.
	Close() error
}

// Start starts a server whose machines are native sandboxes, until the test ends, and returns the options of its user.
func Start[S Server](t testing.TB, serve func(machines sandbox.Backend) (S, error)) (s S, options sandbox.Options, err error) {
	t.Helper()
	machines, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		return s, options, fmt.Errorf("machines for the server: %w", err)
	}
	sandboxtest.CloseLater(t, machines)
	if s, err = serve(machines); err != nil {
		return s, options, err
	}
	sandboxtest.CloseLater(t, s)
	return s, sandbox.Options{StateDir: t.TempDir(), Settings: s.Settings()}, nil
}

// Open opens a backend that is closed with the test. A test with a server has no reason to be skipped.
func Open(t testing.TB, name string, options sandbox.Options) sandbox.Backend {
	t.Helper()
	b, err := sandbox.Open(name, options)
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.CloseLater(t, b)
	return b
}

// WantError checks that an error contains what a user needs to know.
func WantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it worked")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want something about %q", err, part)
		}
	}
}

// Machines checks how many machines run.
func Machines(t testing.TB, s Server, want int) {
	t.Helper()
	if n := s.Running(); n != want {
		t.Errorf("%d machines run, want %d", n, want)
	}
}

// Refused is a case of settings that a backend refuses, and its error.
type Refused struct {
	Name string
	Give map[string]string
	Want string
}

// Settings checks that settings are refused.
func Settings(t *testing.T, name string, tests []Refused) {
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			_, err := sandbox.Open(name, sandbox.Options{StateDir: t.TempDir(), Settings: tt.Give})
			WantError(t, err, tt.Want)
		})
	}
}
