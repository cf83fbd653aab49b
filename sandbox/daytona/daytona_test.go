package daytona_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	_ "trajgen/sandbox/daytona"
	"trajgen/sandbox/internal/rented/rentedtest"
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
	sandboxtest.Require(t, "daytona", err)
	return s, options
}

func open(t testing.TB, options sandbox.Options) sandbox.Backend {
	t.Helper()
	return rentedtest.Open(t, "daytona", options)
}

func TestContract(t *testing.T) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Backend {
		_, options := start(t)
		return open(t, options)
	}, sandboxtest.Caps{Lacks: map[string]string{
		"no file outgrows the limit of the disk": "the limit is the service's own, and this is a stand-in for it",
	}})
}

func TestSettings(t *testing.T) {
	rentedtest.Settings(t, "daytona", []rentedtest.Refused{
		{Name: "none", Want: "set DAYTONA_API_KEY"},
		{Name: "unknown", Give: map[string]string{"api_key": "a", "colour": "red"}, Want: `unknown setting "colour" (have api_key, api_url, organization, target, image, user, autostop, arch)`},
		{Name: "never", Give: map[string]string{"api_key": "a", "autostop": "0"}, Want: `"0" is not a number of minutes, at least 1`},
		{Name: "strange machines", Give: map[string]string{"api_key": "a", "arch": "vax"}, Want: `setting arch: "vax" is neither amd64 nor arm64`},
		{Name: "no address", Give: map[string]string{"api_key": "a", "api_url": "daytona"}, Want: `"daytona" does not begin with https:// or http://`},
	})
}

func TestCredentialsRefused(t *testing.T) {
	_, options := start(t)
	options.Settings["api_key"] = "dtn_wrong"
	_, err := sandbox.Open("daytona", options)
	rentedtest.WantError(t, err, "refuses the key in DAYTONA_API_KEY", "status 401")
	if strings.Contains(err.Error(), "dtn_wrong") {
		t.Errorf("%v gives the key away", err)
	}
	options.Settings["api_key"], options.Settings["organization"] = Key, "another"
	_, err = sandbox.Open("daytona", options)
	rentedtest.WantError(t, err, "status 403", "No access to this organization")
}

func TestFailuresAreToldApart(t *testing.T) {
	s, options := start(t)
	b := open(t, options)
	for _, tt := range []struct {
		name   string
		status int
		want   string
	}{
		{"quota", http.StatusForbidden, "quota is used up"},
		{"money", http.StatusPaymentRequired, "wants to be paid"},
		{"wrong", http.StatusBadRequest, "refuses the request"},
		{"outage", http.StatusBadGateway, "Daytona failed (status 502)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.Fail("POST", "/sandbox", tt.status, nil, 1, false)
			_, err := b.Open(t.Context(), sandbox.Spec{ID: "a"})
			rentedtest.WantError(t, err, tt.want)
		})
	}
	_, err := b.Open(t.Context(), sandbox.Spec{ID: "a", Image: "nowhere:none"})
	rentedtest.WantError(t, err, "build_failed", "manifest unknown")
	_, err = b.Open(t.Context(), sandbox.Spec{ID: "a", Image: "snapshot:none"})
	rentedtest.WantError(t, err, "Snapshot none not found")
	_, err = b.Open(t.Context(), sandbox.Spec{ID: "a", Network: sandbox.NetworkAllowlist, Allow: []string{"example.org"}})
	rentedtest.WantError(t, err, "not offered")
	rentedtest.Machines(t, s, 0)
}

func TestUnreachable(t *testing.T) {
	s, options := start(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DAYTONA_API_KEY", Key)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	delete(options.Settings, "api_key")
	options.Settings["mark"] = "some"
	err := sandbox.Kinds()["daytona"].Sweep(ctx, sandbox.Instance{Name: "daytona-1", Settings: options.Settings})
	rentedtest.WantError(t, err, "cannot be reached")
}

// TestBusyService has the service refuse now and then.
func TestBusyService(t *testing.T) {
	s, options := start(t)
	b := open(t, options)
	later := http.Header{"Retry-After": {"1"}}
	s.Fail("POST", "/sandbox", http.StatusTooManyRequests, later, 1, false)
	s.Fail("POST", "/files/upload", http.StatusServiceUnavailable, nil, 1, true)
	s.Fail("POST", "/process/pty", http.StatusBadGateway, nil, 1, true)
	began := time.Now()
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "a"})
	if took := time.Since(began); took < time.Second {
		t.Errorf("it took %v, and the service had asked for a second", took)
	}
	sandboxtest.Sh(t, sb, "true")
	rentedtest.Machines(t, s, 1)
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	rentedtest.Machines(t, s, 0)
}

// TestDoubt has a machine made that nobody hears of. It is not asked for again.
func TestDoubt(t *testing.T) {
	s, options := start(t)
	b, err := sandbox.Open("daytona", options)
	if err != nil {
		t.Fatal(err)
	}
	before := s.Calls("POST", "/sandbox")
	s.Fail("POST", "/sandbox", http.StatusInternalServerError, nil, 1, true)
	_, err = b.Open(t.Context(), sandbox.Spec{ID: "a"})
	rentedtest.WantError(t, err, "Daytona failed (status 500)")
	if n, asked := s.Running(), s.Calls("POST", "/sandbox")-before; n != 1 || asked != 1 {
		t.Errorf("%d machines run after %d requests, want the one that nobody knows of", n, asked)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	rentedtest.Machines(t, s, 0)
}

// TestImage has what the image sets reach commands, whatever the login shell makes of it.
func TestImage(t *testing.T) {
	s, options := start(t)
	s.Env = []string{"PATH=/opt/tool/bin:/usr/bin:/bin", "IMAGE_SAYS=it's\n\"hello\"\x02\x7f", "EMPTY="}
	sb := sandboxtest.Box(t, open(t, options), sandbox.Spec{ID: "a", Env: map[string]string{"MINE": "1"}})
	want := "/opt/tool/bin:/usr/bin:/bin|it's\n\"hello\"\x02\x7f||1|"
	if got := sandboxtest.Sh(t, sb, `printf '%s|%s|%s|%s|%s' "$PATH" "$IMAGE_SAYS" "$EMPTY" "$MINE" "$DAYTONA_SANDBOX_ID"`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := sb.Layout().Workdir; got != "/workspace" {
		t.Errorf("working directory: got %s", got)
	}
}

func TestSnapshot(t *testing.T) {
	s, options := start(t)
	b := open(t, options)
	for _, image := range []string{"snapshot:" + Snapshot} {
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "a", Image: image})
		sandboxtest.Sh(t, sb, "true")
	}
	rentedtest.Machines(t, s, 1)
}

// TestBytes sends all there are, in both directions, through what is a terminal.
func TestBytes(t *testing.T) {
	_, options := start(t)
	sb := sandboxtest.Box(t, open(t, options), sandbox.Spec{ID: "a"})
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i * 7 >> (i % 5))
	}
	if err := sb.Files().Write(t.Context(), sandbox.FileWrite{Path: "all", Data: data}); err != nil {
		t.Fatal(err)
	}
	got, _, err := sb.Files().Read(t.Context(), "all", 0, int64(len(data))+1)
	if err != nil || string(got) != string(data) {
		t.Errorf("got %d bytes, %v, want the %d that were written", len(got), err, len(data))
	}
}

// TestLost has the service end a machine, or the connection to it, while a command runs.
func TestLost(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(*Server)
		want string
	}{
		{"machine", (*Server).Lose, "ended"},
		{"connection", (*Server).Drop, "not read fast enough"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, options := start(t)
			b := open(t, options)
			sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "a"})
			p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sleep", "50.2"}})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			tt.lose(s)
			if x, err := p.Wait(t.Context()); !errors.Is(err, sandbox.ErrGone) || x.Code != 0 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("wait: got %+v, %v, want ErrGone", x, err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v to notice", took)
			}
			if err := sb.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			rentedtest.Machines(t, s, 0)
			sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: "a"}), "true")
		})
	}
}

// TestCancelled gives up an opening.
func TestCancelled(t *testing.T) {
	s, options := start(t)
	b, err := sandbox.Open("daytona", options)
	if err != nil {
		t.Fatal(err)
	}
	s.Fail("GET", "000002", http.StatusServiceUnavailable, nil, 1000, false)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s.Fail("DELETE", "000002", http.StatusServiceUnavailable, nil, 2, false)
	began := time.Now()
	go func() {
		for s.Calls("DELETE", "000002") == 0 {
			time.Sleep(time.Millisecond)
		}
		s.Fail("GET", "000002", 0, nil, 0, false)
	}()
	if _, err := b.Open(ctx, sandbox.Spec{ID: "a"}); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	rentedtest.Machines(t, s, 0)
}

func TestSweep(t *testing.T) { rentedtest.Sweep(t, "daytona", start) }
