package modal_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented/rentedtest"
	_ "trajgen/sandbox/modal"
	_ "trajgen/sandbox/native" // the machines of the server
	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Init()
	os.Exit(m.Run())
}

func start(t testing.TB) (*Server, sandbox.Options) {
	t.Helper()
	s, options, err := Start(t)
	sandboxtest.Require(t, "modal", err)
	return s, options
}

func open(t testing.TB, options sandbox.Options) sandbox.Backend {
	t.Helper()
	return rentedtest.Open(t, "modal", options)
}

func TestContract(t *testing.T) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Backend {
		_, options := start(t)
		return open(t, options)
	}, sandboxtest.Caps{})
}

func TestSettings(t *testing.T) {
	rentedtest.Settings(t, "modal", []rentedtest.Refused{
		{Name: "none", Want: "set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"},
		{Name: "unknown", Give: map[string]string{"token_id": "a", "token_secret": "b", "colour": "red"}, Want: `unknown setting "colour" (have token_id, token_secret, server_url, environment, app, image, timeout, arch)`},
		{Name: "too long", Give: map[string]string{"token_id": "a", "token_secret": "b", "timeout": "25h"}, Want: `"25h" is not a duration between 1m and 24h`},
		{Name: "strange machines", Give: map[string]string{"token_id": "a", "token_secret": "b", "arch": "vax"}, Want: `setting arch: "vax" is neither amd64 nor arm64`},
		{Name: "no address", Give: map[string]string{"token_id": "a", "token_secret": "b", "server_url": "modal"}, Want: `"modal" does not begin with https:// or http://`},
	})
}

func TestCredentialsRefused(t *testing.T) {
	_, options := start(t)
	options.Settings["token_secret"] = "as-wrong"
	_, err := sandbox.Open("modal", options)
	rentedtest.WantError(t, err, "refuses the credentials", "MODAL_TOKEN_SECRET")
	if strings.Contains(err.Error(), "as-wrong") {
		t.Errorf("%v gives the secret away", err)
	}
}

func TestFailuresAreToldApart(t *testing.T) {
	s, options := start(t)
	b := open(t, options)
	throttled, err := status.New(codes.ResourceExhausted, "too many requests").WithDetails(pb.RPCRetryPolicy_builder{RetryAfterSecs: 1000}.Build())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		give error
		want string
	}{
		{"quota", status.Error(codes.ResourceExhausted, "100 containers at once"), "quota for this workspace is used up"},
		{"rate", throttled.Err(), "limits the rate of requests"},
		{"rights", status.Error(codes.PermissionDenied, "read only"), "does not let these credentials"},
		{"wrong", status.Error(codes.InvalidArgument, "too much memory"), "refuses the request"},
		{"outage", status.Error(codes.Unavailable, "try later"), "cannot be reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.Fail("SandboxCreateV2", tt.give, 10, false)
			defer s.Fail("SandboxCreateV2", nil, 0, false)
			_, err := b.Open(t.Context(), sandbox.Spec{ID: "a"})
			rentedtest.WantError(t, err, tt.want)
		})
	}
	_, err = b.Open(t.Context(), sandbox.Spec{ID: "a", Image: "nowhere:none"})
	rentedtest.WantError(t, err, "image nowhere:none", "could not build the image", "manifest unknown")
	_, err = b.Open(t.Context(), sandbox.Spec{ID: "a", Image: "im-0123456789"})
	rentedtest.WantError(t, err, "image im-0123456789", "does not know this")
	_, err = b.Open(t.Context(), sandbox.Spec{ID: "a", Network: sandbox.NetworkAllowlist, Allow: []string{"example.org"}})
	rentedtest.WantError(t, err, "not offered")
	rentedtest.Machines(t, s, 0)
}

// TestAnswersLost has the service do its work and its answers not arrive: whatever is asked again is done once.
func TestAnswersLost(t *testing.T) {
	s, options := start(t)
	b := open(t, options)
	for _, method := range []string{"SandboxCreateV2", "TaskExecStart", "TaskExecStdinWrite"} {
		s.Fail(method, status.Error(codes.Unavailable, "lost"), 1, true)
	}
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "a"})
	rentedtest.Machines(t, s, 1)
	for range 3 {
		s.Fail("TaskExecStdinWrite", status.Error(codes.Unavailable, "lost"), 1, true)
		if got := sandboxtest.Sh(t, sb, "echo x >> f; wc -l < f"); strings.TrimSpace(got) == "" {
			t.Error("nothing was said")
		}
	}
	if got := sandboxtest.Sh(t, sb, "wc -l < f"); strings.TrimSpace(got) != "3" {
		t.Errorf("commands ran %s times, want 3", strings.TrimSpace(got))
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	rentedtest.Machines(t, s, 0)
}

// TestDoubt has a machine made that nobody hears of.
func TestDoubt(t *testing.T) {
	s, options := start(t)
	b, err := sandbox.Open("modal", options)
	if err != nil {
		t.Fatal(err)
	}
	s.Fail("SandboxCreateV2", status.Error(codes.PermissionDenied, "and yet it was made"), 1, true)
	if _, err := b.Open(t.Context(), sandbox.Spec{ID: "a"}); err == nil {
		t.Error("it opened")
	}
	if n := s.Running(); n != 1 {
		t.Errorf("%d machines run, want the one that nobody knows of", n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	rentedtest.Machines(t, s, 0)
}

// TestLayer has the agent sent twice, whatever the number of sandboxes, and nothing left at Modal.
func TestLayer(t *testing.T) {
	s, options := start(t)
	b, err := sandbox.Open("modal", options)
	if err != nil {
		t.Fatal(err)
	}
	var opening sync.WaitGroup
	for i := range 6 {
		opening.Go(func() {
			if _, err := b.Open(t.Context(), sandbox.Spec{ID: fmt.Sprint("a", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
	if n := s.Calls("TaskExecStdinWriteStream"); n != 2 {
		t.Errorf("the agent was sent %d times, want 2", n)
	}
	s.Forget()
	sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: "b"}), "true")
	if n := s.Images(); n != 1 {
		t.Errorf("%d images, want the layer made again", n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if n, m := s.Images(), s.Running(); n != 0 || m != 0 {
		t.Errorf("%d images and %d machines are left", n, m)
	}
}

// TestLost has the service end a machine while a command runs in it.
func TestLost(t *testing.T) {
	s, options := start(t)
	b := open(t, options)
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "a"})
	p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sleep", "50.1"}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.Lose()
	if x, err := p.Wait(t.Context()); !errors.Is(err, sandbox.ErrGone) || x.Code != 0 {
		t.Errorf("wait: got %+v, %v, want ErrGone", x, err)
	}
	if _, err := sb.Files().Stat(t.Context(), "."); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("stat: got %v, want ErrGone", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v to notice", took)
	}
	if err := sb.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: "a"}), "true")
}

func TestSweep(t *testing.T) { rentedtest.Sweep(t, "modal", start) }
