package relay_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

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
		{"a shell", []byte("Welcome to the machine!\n$ "), `it is not an agent: it says "Welcome to the machine!\n$ "`},
		{"an older one", relay.Hello(relay.Version - 1), "it speaks version 2 of the protocol, and this program version 3"},
		{"a newer one", relay.Hello(relay.Version + 1), "it speaks version 4 of the protocol, and this program version 3"},
		{"half a greeting", relay.Hello(relay.Version)[:17], "unexpected EOF"},
		{"no end of a greeting", append(relay.Hello(relay.Version)[:16], bytes.Repeat([]byte(" "), 2<<20)...), "malformed"},
		{"no greeting at all", append(relay.Hello(relay.Version)[:16], "nonsense\n"...), "malformed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := relay.Dial(t.Context(), speaks(t, tt.said), relay.Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("dial: got %v, want %q", err, tt.want)
			}
			backend := &sandboxtest.Scripted{}
			if err := relay.Serve(speaks(t, tt.said), backend, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), tt.want) {
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

// hostile is an agent that greets, and answers the requests of a client, one after the other, with what it likes. After an
// answer it may hang up.
func hostile(t testing.TB, reply func(f *http2.Framer, nth int, stream uint32) (hangUp bool)) net.Conn {
	t.Helper()
	ours, theirs := pair(t)
	t.Cleanup(func() { theirs.Close() })
	go func() {
		in := bufio.NewReader(theirs)
		f := http2.NewFramer(theirs, in)
		f.AllowIllegalWrites = true
		_, _ = theirs.Write(relay.Hello(relay.Version))
		_ = f.WriteSettings()
		_, _ = in.ReadSlice('\n')
		_, _ = in.Discard(len(http2.ClientPreface))
		for nth := 0; ; {
			frame, err := f.ReadFrame()
			if err != nil {
				_ = theirs.Close()
				return
			}
			if request, ok := frame.(*http2.HeadersFrame); ok {
				if reply(f, nth, request.StreamID) {
					_ = theirs.(*net.UnixConn).CloseWrite()
				}
				nth++
			}
		}
	}()
	return ours
}

// answer answers a request with a status of 200.
func answer(f *http2.Framer, stream uint32, contents ...[]byte) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true, BlockFragment: []byte{0x88}})
	for _, content := range contents {
		_ = f.WriteData(stream, false, content)
	}
}

// framed is a message with its length before it.
func framed(m []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
}

// opened answers an opening: sandbox 1, with its layout, traffic and guarantees.
var opened = append(number(0, 1), "\x02w\x02h\x02t\x02v\x00\x02\x04{}"...)

// TestBrokenRules has an agent break each rule of the protocol: the client's sandboxes are gone, and it tells why.
func TestBrokenRules(t *testing.T) {
	tests := map[string]func(f *http2.Framer) (hangUp bool){
		"a frame that is too long": func(f *http2.Framer) bool { return f.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 17<<10)) != nil },
		"a pushed answer": func(f *http2.Framer) bool {
			return f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true, BlockFragment: []byte{0x82}}) != nil
		},
		"another status": func(f *http2.Framer) bool {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: []byte{0x8e}}) != nil
		},
		"an answer that is given up": func(f *http2.Framer) bool { return f.WriteRSTStream(1, http2.ErrCodeCancel) != nil },
		"an answer that is too long": func(f *http2.Framer) bool {
			answer(f, 1, []byte{0x7f, 0xff, 0xff, 0xff})
			return false
		},
		"half an answer": func(f *http2.Framer) bool {
			answer(f, 1, []byte{0, 0, 1, 0, 'x'})
			return f.WriteData(1, true, nil) != nil
		},
		"half an answer, and no more": func(f *http2.Framer) bool {
			answer(f, 1, []byte{0, 0, 1, 0, 'x'})
			return true
		},
		"a strange credit": func(f *http2.Framer) bool {
			_ = f.WriteWindowUpdate(0, 1<<31-1)
			return f.WriteWindowUpdate(0, 1) != nil
		},
		"an empty answer": func(f *http2.Framer) bool {
			answer(f, 1, framed(nil))
			return false
		},
		"no guarantees": func(f *http2.Framer) bool {
			answer(f, 1, framed(append(number(0, 1), "\x02w\x02h\x02t\x02v\x00\x02\x02{"...)))
			return false
		},
		"headers without end": func(f *http2.Framer) bool {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
			for f.WriteContinuation(1, false, bytes.Repeat([]byte{0x88}, 16<<10)) == nil {
			}
			return false
		},
	}
	for name, say := range tests {
		t.Run(name, func(t *testing.T) {
			agent := hostile(t, func(f *http2.Framer, _ int, _ uint32) bool { return say(f) })
			client, err := relay.Dial(t.Context(), agent, relay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Open(t.Context(), sandbox.Spec{ID: "x"})
			if !errors.Is(err, sandbox.ErrGone) || strings.Contains(err.Error(), "said nothing") {
				t.Errorf("got %v, want ErrGone and why", err)
			}
			<-client.Done()
		})
	}
	t.Run("no HTTP", func(t *testing.T) {
		said := append(relay.Hello(relay.Version), "HTTP/1.1 200 OK\r\n\r\nhello, this is a web server and no agent"...)
		client, err := relay.Dial(t.Context(), speaks(t, said), relay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Open(t.Context(), sandbox.Spec{ID: "x"}); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("got %v, want ErrGone", err)
		}
	})
}

// TestFloods has an agent send more than it may, announce what it does not send, or ask for signs of life without end and
// listen to none: no memory is taken for it.
func TestFloods(t *testing.T) {
	tests := map[string]func(f *http2.Framer){
		"an announcement": func(f *http2.Framer) { answer(f, 1, []byte{0, 0x7f, 0, 0}, []byte("x")) },
		"more than there is room for": func(f *http2.Framer) {
			answer(f, 1, framed(opened))
			for f.WriteData(1, false, make([]byte, 16<<10)) == nil {
			}
		},
		"pings": func(f *http2.Framer) {
			for f.WritePing(false, [8]byte{}) == nil {
			}
		},
		"settings": func(f *http2.Framer) {
			for f.WriteSettings() == nil {
			}
		},
	}
	for name, say := range tests {
		t.Run(name, func(t *testing.T) {
			agent := hostile(t, func(f *http2.Framer, nth int, _ uint32) bool {
				if nth == 0 {
					say(f)
				}
				return false
			})
			client, err := relay.Dial(t.Context(), agent, relay.Options{Patience: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if sb, err := client.Open(ctx, sandbox.Spec{ID: "x"}); err == nil {
				_, err = sb.Start(ctx, sandbox.Command{Args: []string{"x"}})
				if err == nil {
					t.Error("an answer from nothing")
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if got := int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse); got > 4<<20 {
				t.Errorf("holds %d bytes", got)
			}
			client.Lose(errors.New("enough"))
		})
	}
}

// FuzzClient feeds a client what an agent in the wrong hands could send: messages of all kinds, what goes on after that of a
// start, and whatever else.
func FuzzClient(f *testing.F) {
	exit := append([]byte{relay.PieceExit, 0, 0, 0, 0}, framed(append([]byte("\x04{}"), number(0)...))...)
	f.Add(opened, number(0, 1, 99, 0), append([]byte{relay.PieceStdout, 0, 0, 0, 3, 'o', 'u', 't'}, exit...), number(0, 0), []byte{})
	f.Add(opened, number(1, 0, 0, 0, 0), []byte{}, number(0), []byte("\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08"))
	f.Add(opened, number(0, 1, 99, 0), exit, append(number(0), "\x02x\x00\x00\x00\x00\x06abc"...), []byte{})
	f.Fuzz(func(t *testing.T, open, start, pieces, other, raw []byte) {
		agent := hostile(t, func(f *http2.Framer, nth int, stream uint32) bool {
			switch nth {
			case 0:
				answer(f, stream, framed(open))
			case 1:
				answer(f, stream, framed(start), pieces)
			default:
				answer(f, stream, framed(other))
			}
			if nth == 1 {
				_ = f.WriteRawFrame(http2.FrameData, http2.FlagDataEndStream, stream, nil)
			}
			if nth == 2 && len(raw) >= 9 {
				_ = f.WriteRawFrame(http2.FrameType(raw[3]), http2.Flags(raw[4]), binary.BigEndian.Uint32(raw[5:]), raw[9:])
			}
			if nth > 1 {
				_ = f.WriteData(stream, true, nil)
			}
			return nth > 4
		})
		client, err := relay.Dial(t.Context(), agent, relay.Options{Patience: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		sb, err := client.Open(ctx, sandbox.Spec{ID: "x"})
		if err != nil {
			return
		}
		defer sb.Close()
		if p, err := sb.Start(ctx, sandbox.Command{Args: []string{"x"}, Stdout: io.Discard, Stderr: io.Discard, Socket: true}); err == nil {
			_, _ = p.Wait(ctx)
			_ = p.Socket().Close()
		}
		if data, _, err := sb.Files().Read(ctx, "x", 0, 100); err == nil && len(data) > 100 {
			t.Errorf("got %d bytes, want at most 100", len(data))
		}
		_, _ = sb.Files().List(ctx, ".")
		if traffic, ok := sb.(sandbox.Traffic); ok {
			traffic.Connections()
		}
	})
}

// FuzzServer feeds a server what no client sends.
func FuzzServer(f *testing.F) {
	spec := append(number(0), "\x12{\"ID\":\"x\"}"...)
	for i := range relay.Methods {
		f.Add(spec, uint8(i), append(number(1), "\x02p\x02\x02a\x00\x00"...), []byte("more"))
	}
	f.Add([]byte{}, uint8(0), []byte{0x7f}, []byte{})
	f.Fuzz(func(t *testing.T, spec []byte, method uint8, message, more []byte) {
		ours, theirs := pair(t)
		backend := &sandboxtest.Scripted{}
		served := make(chan error, 1)
		go func() { served <- relay.Serve(theirs, backend, slog.New(slog.DiscardHandler)) }()
		_, _ = ours.Write(append(relay.Hello(relay.Version), http2.ClientPreface...))
		f := http2.NewFramer(ours, nil)
		_ = f.WriteSettings()
		request(f, 1, relay.Methods[0], framed(spec), nil)
		request(f, 3, relay.Methods[int(method)%len(relay.Methods)], framed(message), more)
		request(f, 5, relay.Methods[int(method)%len(relay.Methods)], message, more)
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		_ = ours.(*net.UnixConn).CloseWrite()
		<-served
		_ = ours.Close()
		for _, sb := range backend.Opened() {
			if !sb.Closed() {
				t.Error("a sandbox was left open")
			}
		}
	})
}

func request(f *http2.Framer, stream uint32, method string, message, more []byte) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "agent"}, {":path", method}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true, BlockFragment: block.Bytes()})
	_ = f.WriteData(stream, false, message)
	_ = f.WriteData(stream, len(more)%2 == 0, more)
}
