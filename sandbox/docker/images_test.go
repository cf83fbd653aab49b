package docker_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// engineOf speaks to the engine of a test.
func engineOf(t testing.TB, opts sandbox.Options) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(opts.Settings["host"]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// derive makes an image from that of the tests, for the time of a test.
func derive(t testing.TB, opts sandbox.Options, name string, changes ...string) string {
	t.Helper()
	c := engineOf(t, opts)
	made, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Image: opts.Settings["image"], Config: &container.Config{Cmd: []string{"true"}}, HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true})
	reference := "trajgen.test/" + name + ":latest"
	if _, err := c.ContainerCommit(t.Context(), made.ID, client.ContainerCommitOptions{Reference: reference, Changes: changes, Config: &container.Config{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Containers of it may be on their way out.
		sandboxtest.Eventually(t, 20*time.Second, "removed "+reference, func() bool {
			_, err := c.ImageRemove(context.Background(), reference, client.ImageRemoveOptions{Force: true})
			return err == nil
		})
	})
	return reference
}

func TestImages(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		b := sandboxtest.Open(t, name, opts)
		rich := derive(t, opts, "rich-"+name, "ENV COLOUR=blue", "ENV LANG=C", "ENV PATH=/opt/own/bin:/usr/bin:/bin", "WORKDIR /srv/app")
		user := derive(t, opts, "user-"+name, "USER www-data:games")
		tests := []struct {
			name, want string
			spec       sandbox.Spec
		}{
			{"default image", "/workspace 0 home C.UTF-8 unset", sandbox.Spec{}},
			{"image of the row", "/srv/app 0 home C blue", sandbox.Spec{Image: rich}},
			{"its own directory and variables", "/data/x 0 home POSIX red", sandbox.Spec{Image: rich, Workdir: "/data/x", Env: map[string]string{"LANG": "POSIX", "COLOUR": "red"}}},
			{"user of the image", "/workspace 33 home C.UTF-8 unset", sandbox.Spec{Image: user}},
		}
		for i, tt := range tests {
			tt.spec.ID = fmt.Sprintf("image-%d", i)
			sb, err := b.Open(t.Context(), tt.spec)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			r := run(t, sb, `touch made && echo $PWD $(id -u) $(cd && [ -w . ] && echo home) $LANG$LC_CTYPE ${COLOUR-unset}`)
			if got := strings.TrimSpace(string(r.Stdout.Bytes())); got != tt.want || sb.Layout().Workdir != strings.Fields(tt.want)[0] {
				t.Errorf("%s: got %q in %s, want %q", tt.name, got, sb.Layout().Workdir, tt.want)
			}
			if r := run(t, sb, "[ $(stat -c %u:%g .) = $(id -u):$(id -g) ] && echo x > /tests/check && ! echo x >> /.trajgen/agent"); r.Exit.Code != 0 {
				t.Errorf("%s: %q", tt.name, r.Stdout.Bytes())
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := b.Open(t.Context(), sandbox.Spec{ID: "proper", Workdir: "/proc/x"}); err == nil {
			t.Error("the working directory may be in /proc")
		}
	})
}

func TestNoImage(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		image := opts.Settings["image"]
		delete(opts.Settings, "image")
		b := sandboxtest.Open(t, name, opts)
		if _, err := b.Open(t.Context(), sandbox.Spec{ID: "none"}); err == nil || !strings.Contains(err.Error(), `the setting "image" of the `+name+` backend`) {
			t.Errorf("without an image: got %v", err)
		}
		if _, err := b.Open(t.Context(), sandbox.Spec{ID: "none", Image: "registry.invalid/no/such:image"}); err == nil || !strings.Contains(err.Error(), "pull image registry.invalid/no/such:image: ") {
			t.Errorf("an image that is nowhere: got %v", err)
		}
		sandboxtest.Box(t, b, sandbox.Spec{ID: "none", Image: image})
	})
}

// proxy stands before an engine, and is where images are pulled from: another tag for the image of the tests.
type proxy struct {
	*httptest.Server
	pulls atomic.Int64
}

func newProxy(t testing.TB, opts sandbox.Options) *proxy {
	t.Helper()
	c := engineOf(t, opts)
	dial := c.Dialer()
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := r.URL.Query().Get("fromImage")
		if !strings.HasSuffix(r.URL.Path, "/images/create") || from == "" {
			forward.ServeHTTP(w, r)
			return
		}
		p.pulls.Add(1)
		for i := range 5 {
			fmt.Fprintf(w, `{"status":"Downloading","id":"layer","progressDetail":{"current":%d,"total":5}}`+"\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond) // all ask meanwhile
		}
		if _, err := c.ImageTag(r.Context(), client.ImageTagOptions{Source: opts.Settings["image"], Target: from + ":" + r.URL.Query().Get("tag")}); err != nil {
			fmt.Fprintf(w, `{"errorDetail":{"message":%q},"error":%[1]q}`+"\n", err.Error())
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func TestPulledOnce(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		p, c := newProxy(t, opts), engineOf(t, opts)
		opts.Settings["host"] = "tcp://" + p.Listener.Addr().String()
		b := sandboxtest.Open(t, name, opts)
		absent := "trajgen.test/absent-" + name + ":1"
		defer c.ImageRemove(context.Background(), absent, client.ImageRemoveOptions{})
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				sb, err := b.Open(t.Context(), sandbox.Spec{ID: fmt.Sprintf("pull-%d", i), Image: absent})
				if err != nil {
					t.Error(err)
					return
				}
				if err := sb.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := p.pulls.Load(); n != 1 {
			t.Errorf("pulled %d times, want once", n)
		}
	})
}
