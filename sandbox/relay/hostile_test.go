package relay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

// speaks is the other end of a stream that says something, whatever it is told, and hangs up.
func speaks(t testing.TB, said []byte) net.Conn {
	t.Helper()
	ours, theirs := pair(t)
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	go func() {
		_, _ = theirs.Write(said)
		_ = theirs.(*net.UnixConn).CloseWrite()
	}()
	t.Cleanup(func() { theirs.Close() })
	return ours
}

// TestStrangers dials and serves those who do not speak as they should.
func TestStrangers(t *testing.T) {
	tests := []struct {
		name string
		said []byte
		want string
	}{
		{"nothing", nil, "it ended at once"},
		{"a shell", []byte("Welcome to the machine!\n$ "), `it is no agent: it says "Welcome to the machine!\n$ "`},
		{"an older one", relay.Hello(relay.Version - 1), "it speaks version 0 of the protocol, and this program version 1"},
		{"a newer one", relay.Hello(relay.Version + 1), "it speaks version 2 of the protocol, and this program version 1"},
		{"half a greeting", relay.Hello(relay.Version)[:40], "unexpected EOF"},
		{"a long greeting", append(relay.Hello(relay.Version)[:15], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), "malformed"},
		{"no end of a number", append(relay.Hello(relay.Version)[:14], bytes.Repeat([]byte{0xff}, 20)...), "overflow"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := relay.Dial(t.Context(), speaks(t, tt.said), relay.Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("dial: got %v, want %q", err, tt.want)
			}
			backend := &sandboxtest.Scripted{}
			if err := relay.Serve(speaks(t, tt.said), backend, relay.ServeOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("serve: got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestSilentStranger gives up a greeting that is not answered.
func TestSilentStranger(t *testing.T) {
	ours, theirs := pair(t)
	defer theirs.Close()
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
	defer cancel()
	if _, err := relay.Dial(ctx, ours, relay.Options{}); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

// TestRefused dials an agent that cannot open its backend.
func TestRefused(t *testing.T) {
	for _, args := range [][]string{{"host", "--state-dir", "/proc/no/place"}, {"elsewhere"}, {"host", "--no-such-flag"}, nil} {
		if _, err := relay.Dial(t.Context(), startAgent(t, args...), relay.Options{}); err == nil || strings.Contains(err.Error(), "EOF") {
			t.Errorf("%q: got %v, want a reason", args, err)
		}
	}
}

// number encodes numbers as a message has them.
func number(values ...int64) []byte {
	var e wire.Encoder
	for _, v := range values {
		e.Int(v)
	}
	return e.Bytes
}

// TestBrokenRules has an agent break each rule of the protocol: the client's sandboxes are gone, and it tells why.
func TestBrokenRules(t *testing.T) {
	// The first call of a client is on stream 1.
	announced := relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, 30<<20))
	chunk := relay.Frame(relay.FrameData, relay.ChannelBody, 1, make([]byte, 16<<10))
	tests := map[string][]byte{
		"an unknown kind":            relay.Frame(99, 0, 1, nil),
		"a kind that clients send":   relay.Frame(relay.FrameCall, 0, 1, number(1, 0)),
		"a frame that is too long":   {0x7f, 0xff, 0xff, 0xff, relay.FrameReply, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		"data that is too long":      relay.Frame(relay.FrameData, 0, 1, make([]byte, 16<<10+1)),
		"an answer that is too long": relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, 1<<40)),
		"a negative length":          relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, -1)),
		"a strange credit":           relay.Frame(relay.FrameCredit, relay.ChannelBody, 1, number(1<<40)),
		"an empty answer":            relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, 0)),
		"more than was announced":    append(relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, 20_000)), append(chunk, chunk...)...),
		"half a frame":               relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, 0))[:10],
		"half an answer":             announced,
	}
	for name, said := range tests {
		t.Run(name, func(t *testing.T) {
			client, err := relay.Dial(t.Context(), speaks(t, append(relay.Hello(relay.Version), said...)), relay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Open(t.Context(), sandbox.Spec{ID: "x"})
			if !errors.Is(err, sandbox.ErrGone) {
				t.Errorf("got %v, want ErrGone", err)
			}
			<-client.Done()
		})
	}
}

// TestAnsweredTwice has an agent answer a call while it still answers it.
func TestAnsweredTwice(t *testing.T) {
	long := relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, 10))
	short := relay.Frame(relay.FrameReply, relay.ChannelBody, 1, append(number(0, 0, 1, 0, 0, 0, 0), "\x00\x02x"...))
	body := relay.Frame(relay.FrameData, relay.ChannelBody, 1, append(number(1, 0, 0, 0, 0), "\x00\x02x\x00\x00"...))
	said := append(append(append(relay.Hello(relay.Version), long...), short...), body...)
	client, err := relay.Dial(t.Context(), speaks(t, said), relay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Open(t.Context(), sandbox.Spec{ID: "x"}); err == nil {
		t.Error("an error was taken for a success")
	}
	select {
	case <-client.Done():
	case <-time.After(10 * time.Second):
		t.Error("the client hangs")
	}
	_ = client.Close()
}

// TestEmptyPromises has an agent announce what it does not send: no memory is taken for it.
func TestEmptyPromises(t *testing.T) {
	said := append(relay.Hello(relay.Version), relay.Frame(relay.FrameReply, relay.ChannelBody, 1, number(0, 30<<20))...)
	said = append(said, relay.Frame(relay.FrameData, relay.ChannelBody, 1, []byte("x"))...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	client, err := relay.Dial(t.Context(), speaks(t, said), relay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Open(t.Context(), sandbox.Spec{ID: "x"}); err == nil {
		t.Error("an answer from nothing")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("took %d bytes for a promise", got)
	}
}

// FuzzClient feeds a client what an agent in the wrong hands could send.
func FuzzClient(f *testing.F) {
	ok := relay.Frame(relay.FrameReply, relay.ChannelBody, 1, append(number(0, 0, 0), "\x02w\x02h\x02t\x02v\x00\x00\x00"...))
	f.Add(ok)
	f.Add(append(ok, relay.Frame(relay.FrameReply, relay.ChannelBody, 2, number(0, 0, 0, 99, 0))...))
	f.Add(append(ok, append(relay.Frame(relay.FrameData, relay.ChannelStdout, 2, []byte("out")), relay.Frame(relay.FrameExit, 0, 2, number(0, 0, 0, 0, 0, 0))...)...))
	f.Fuzz(func(t *testing.T, said []byte) {
		client, err := relay.Dial(t.Context(), speaks(t, append(relay.Hello(relay.Version), said...)), relay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		sb, err := client.Open(t.Context(), sandbox.Spec{ID: "x"})
		if err != nil {
			return
		}
		if p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"x"}, Stdout: io.Discard, Stderr: io.Discard, Socket: true}); err == nil {
			_, _ = p.Wait(t.Context())
			_ = p.Socket().Close()
		}
		if data, _, err := sb.Files().Read(t.Context(), "x", 0, 100); err == nil && len(data) > 100 {
			t.Errorf("got %d bytes, want at most 100", len(data))
		}
		_, _ = sb.Files().List(t.Context(), ".")
		if traffic, ok := sb.(sandbox.Traffic); ok {
			traffic.Connections()
		}
		_ = sb.Close()
	})
}

// FuzzServer feeds a server what no client sends.
func FuzzServer(f *testing.F) {
	open := relay.Frame(relay.FrameCall, relay.ChannelBody, 1, append(number(1, 0), "\x02x\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...))
	f.Add(open)
	for method := range int64(16) {
		f.Add(append(open, relay.Frame(relay.FrameCall, relay.ChannelBody, 2, append(number(method, 0, 1), "\x02p\x02\x02a\x00\x00"...))...))
	}
	f.Add(relay.Frame(relay.FrameCall, relay.ChannelBody, 1, number(9, 1<<29)))
	f.Fuzz(func(t *testing.T, said []byte) {
		backend := &sandboxtest.Scripted{}
		_ = relay.Serve(speaks(t, append(relay.Hello(relay.Version), said...)), backend, relay.ServeOptions{})
		for _, sb := range backend.Opened() {
			if !sb.Closed() {
				t.Error("a sandbox was left open")
			}
		}
	})
}
