package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trajgen/pipeline/model/record"
)

var quiet = slog.New(slog.DiscardHandler)

// agent is an exchange of an episode's agent whose conversation has these messages.
func agent(episode string, turn, try int, messages ...string) *record.Exchange {
	return &record.Exchange{
		Asker: record.Asker{Episode: episode, Attempt: 1}, Turn: turn, Try: try, Status: 200, Request: ask(messages...),
		Body: fmt.Appendf(nil, "reply %s %d %d", episode, turn, try),
	}
}

func ask(messages ...string) record.Request {
	var texts []string
	for i, message := range messages {
		texts = append(texts, fmt.Sprintf(`{"role":"user","content":%q,"n":%d}`, message, i))
	}
	return record.Request{
		Fields: []byte(`{"model":"m","temperature":0.5}`), Messages: []byte("[" + strings.Join(texts, ",") + "]"), Tools: []byte(`[{"function":{"name":"ls"}}]`),
	}
}

func write(t *testing.T, path string, more bool, all ...*record.Exchange) {
	t.Helper()
	r, err := record.OpenTape(path, more, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Begin("run", record.Session{Bases: []string{"http://a/v1"}, Window: 100}); err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if err := r.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *record.Replay {
	t.Helper()
	played, err := record.OpenReplay(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { played.Close() })
	return played
}

// next plays an exchange and compares it with what was recorded.
func next(t *testing.T, played *record.Replay, want *record.Exchange) {
	t.Helper()
	got, err := played.Next(want.Asker, want.Turn, want.Request)
	if err != nil {
		t.Fatalf("turn %d: %v", want.Turn, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(record.Exchange{}, "Request"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("turn %d (-recorded +played):\n%s", want.Turn, diff)
	}
}

func TestPlaysWhatWasRecorded(t *testing.T) {
	left := time.Minute
	a0, b0, a1, a1again, b1 := agent("a", 0, 0, "hi"), agent("b", 0, 0, "ho"), agent("a", 1, 0, "hi", "there"), agent("a", 1, 1, "hi", "there"), agent("b", 1, 0, "rewritten")
	a1.End, a1.Error, a1.Slow, a1.Status = record.Failed, "dial", true, 0
	a1again.Pause, a1again.Left, a1again.Header = time.Second, &left, map[string][]string{"Retry-After": {"1"}}
	other := &record.Exchange{Asker: record.Asker{Role: "user", Episode: "a", Attempt: 1}, Request: ask("which?"), Body: []byte("this"), Status: 200}
	same := *other
	same.Body = []byte("that")
	path := filepath.Join(t.TempDir(), "new", "tape")
	write(t, path, false, a0, b0, other, a1, &same, a1again, b1)

	played := open(t, filepath.Dir(path))
	next(t, played, b0)
	next(t, played, a0)
	next(t, played, b1)
	next(t, played, other)
	next(t, played, &same)
	next(t, played, a1)
	if x, ok := played.Peek(a0.Asker); !ok || x.Try != 1 || x.Pause != time.Second {
		t.Errorf("Peek = %+v, %v, want the second try", x, ok)
	}
	next(t, played, a1again)
	if x, ok := played.Peek(a0.Asker); ok {
		t.Errorf("Peek = %+v at the end", x)
	}
	if got := played.Session(); got.Window != 100 || got.Bases[0] != "http://a/v1" {
		t.Errorf("Session = %+v", got)
	}
}

func TestMismatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	long := strings.Repeat("x", 300)
	write(t, path, false, agent("a", 0, 0, "hi", "you"), agent("a", 1, 0, "hi", "you", "thére"+long+"end"))
	hotter, fewer, reordered := ask("hi", "you"), ask("hi", "you"), ask("hi", "you")
	hotter.Fields = []byte(`{"model":"m","temperature":0.7}`)
	fewer.Tools = nil
	reordered.Fields = []byte(`{"temperature":0.5,"model":"m"}`)
	for _, tt := range []struct {
		name string
		who  string
		turn int
		give record.Request
		want string
	}{
		{"content", "a", 0, ask("hi", "they"), `episode a turn 0: messages[1].content differs from the tape (recorded "you", now "they")`},
		{"one more", "a", 0, ask("hi", "you", "x"), `messages[2] differs from the tape (recorded nothing, now "{\"content\":\"x\"`},
		{"emptied", "a", 0, ask("hi", ""), `messages[1].content differs from the tape (recorded "you", now "")`},
		{"field", "a", 0, hotter, `temperature differs from the tape (recorded "0.5", now "0.7")`},
		{"tools", "a", 0, fewer, `tools differs from the tape (recorded "[{\"function\"`},
		{"no such episode", "z", 0, ask("hi"), `episode z turn 0: the episode is not on the tape, which has 1 others`},
		{"other turn", "a", 7, ask("hi"), `turn 7: the request is not on the tape, where one of turn 0 comes next`},
		{"order of keys", "a", 0, reordered, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := open(t, path).Next(record.Asker{Episode: tt.who, Attempt: 1}, tt.turn, tt.give)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var m *record.Mismatch
			if !errors.As(err, &m) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	// What differs in the beginning is found there, and long texts are shown from where they part.
	played := open(t, path)
	next(t, played, agent("a", 0, 0, "hi", "you"))
	_, err := played.Next(record.Asker{Episode: "a", Attempt: 1}, 1, ask("ho", "you", "thére"+long+"end"))
	if err == nil || !strings.Contains(err.Error(), `messages[0].content differs from the tape (recorded "hi", now "ho")`) {
		t.Errorf("error %v, want the first message", err)
	}
	_, err = played.Next(record.Asker{Episode: "a", Attempt: 1}, 1, ask("hi", "you", "thére"+long+"END"))
	if err == nil || !strings.Contains(err.Error(), `xxxend", now "…xxx`) {
		t.Errorf("error %v, want it from where they part", err)
	}
	next(t, played, agent("a", 1, 0, "hi", "you", "thére"+long+"end"))
	_, err = played.Next(record.Asker{Episode: "a", Attempt: 1}, 2, ask("hi"))
	if err == nil || !strings.Contains(err.Error(), "ends for this episode with turn 1") {
		t.Errorf("error %v, want that nothing is left", err)
	}
	_, err = played.Next(record.Asker{Episode: "a", Attempt: 2}, 0, ask("hi"))
	if err == nil || !strings.Contains(err.Error(), "only attempts [1], and not 2") {
		t.Errorf("error %v, want the attempts that there are", err)
	}
}

// TestRefusedFirst has a run learn from one episode what it then does in all: a request that was refused in another
// order of things is not made again.
func TestRefusedFirst(t *testing.T) {
	refused, taken := agent("a", 0, 0, "hi"), agent("a", 0, 1, "hi")
	refused.Request.Fields, refused.Status = []byte(`{"old":1}`), 400
	later := agent("a", 1, 0, "hi", "there")
	path := filepath.Join(t.TempDir(), "tape")
	write(t, path, false, refused, taken, later)
	played := open(t, path)
	next(t, played, taken)
	next(t, played, later)
}

// TestGoesOn records an episode that was cut short again, from its beginning.
func TestGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	write(t, path, false, agent("a", 0, 0, "hi"), agent("a", 1, 0, "hi", "1"), agent("b", 0, 0, "ho"))
	if _, err := record.OpenTape(path, false, quiet); err == nil || !strings.Contains(err.Error(), "holds 3 exchanges of another run: --resume") {
		t.Errorf("Record over a tape: %v", err)
	}
	again, after := agent("a", 0, 0, "hi"), agent("a", 1, 0, "hi", "2")
	again.Body = []byte("anew")
	write(t, path, true, again, after)
	played := open(t, path)
	next(t, played, again)
	next(t, played, after)
	next(t, played, agent("b", 0, 0, "ho"))
}

func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tape")
	a, b := agent("a", 0, 0, "hi"), agent("a", 1, 0, "hi", strings.Repeat("there", 50))
	write(t, path, false, a)
	short, _ := os.ReadFile(path)
	write(t, path, true, b)
	whole, _ := os.ReadFile(path)
	for size := len(short); size < len(whole); size += 7 {
		for _, junk := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
			torn := filepath.Join(dir, "torn")
			if err := os.WriteFile(torn, append(bytes.Clone(whole[:size]), junk...), 0o644); err != nil {
				t.Fatal(err)
			}
			next(t, open(t, torn), a)
			var said bytes.Buffer
			r, err := record.OpenTape(torn, true, slog.New(slog.NewTextHandler(&said, nil)))
			if err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if err := r.Add(agent("c", 0, 0, "new")); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if junk != "" && !strings.Contains(said.String(), "half-written") {
				t.Errorf("%d bytes: nothing said of the end that was cut off", size)
			}
			played := open(t, torn)
			next(t, played, a)
			next(t, played, agent("c", 0, 0, "new"))
		}
	}
}

func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	a, b, c := agent("a", 0, 0, "hi"), agent("b", 0, 0, "ho"), agent("c", 0, 0, "hu")
	write(t, path, false, a)
	before, _ := os.ReadFile(path)
	write(t, path, true, b, c)
	data, _ := os.ReadFile(path)
	at := len(before) + bytes.Index(data[len(before):], []byte(`"ep":"b"`))
	data[at+6] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := record.OpenTape(path, true, quiet); err == nil || !strings.Contains(err.Error(), "damaged at byte") {
		t.Errorf("Record onto a damaged tape: %v", err)
	}
	var said bytes.Buffer
	played, err := record.OpenReplay(path, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer played.Close()
	next(t, played, a)
	next(t, played, c)
	if _, err := played.Next(b.Asker, 0, b.Request); err == nil || !strings.Contains(said.String(), "damaged") {
		t.Errorf("error %v, said %q", err, &said)
	}
}

// TestDamagedTools loses one list of tools, and no other.
func TestDamagedTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	var all []*record.Exchange
	for _, name := range []string{"first", "second", "third"} {
		x := agent(name, 0, 0, "hi")
		x.Request.Tools = []byte(`[{"function":{"name":"` + name + `"}}]`)
		all = append(all, x)
	}
	write(t, path, false, all...)
	data, _ := os.ReadFile(path)
	data[bytes.Index(data, []byte(`{"name":"second"}`))+9] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	played := open(t, path)
	next(t, played, all[0])
	next(t, played, all[2])
	if _, err := played.Next(all[1].Asker, 0, all[1].Request); err == nil || !strings.Contains(err.Error(), "missing; it is damaged") {
		t.Errorf("error %v, want that the tools are missing", err)
	}
}

// TestReadsOnce plays a conversation whose requests are written otherwise than they were: what was played is not read
// again for those that follow, or a long one would take the square of its length.
func TestReadsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	x, y, z := agent("a", 0, 0, "hi"), agent("a", 1, 0, "hi", "you"), agent("a", 2, 0, "hi", "you", "there")
	write(t, path, false, x, y, z)
	for _, x := range []*record.Exchange{x, y, z} {
		x.Request.Messages = bytes.ReplaceAll(x.Request.Messages, []byte(":"), []byte(": "))
	}
	played := open(t, path)
	next(t, played, x)
	next(t, played, y)
	data, _ := os.ReadFile(path)
	data[bytes.Index(data, []byte(`"ep":"a"`))+6] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	next(t, played, z)
}

func TestNoTape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("# a text of somebody's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"open":   func() error { _, err := record.OpenReplay(path, quiet); return err },
		"record": func() error { _, err := record.OpenTape(path, true, quiet); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "is not a tape") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, _ := os.ReadFile(path); string(data) != "# a text of somebody's\n" {
		t.Errorf("the file was changed: %q", data)
	}
}

func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	r, err := record.OpenTape(path, false, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := record.OpenTape(path, true, quiet); err == nil || !strings.Contains(err.Error(), "another run is recording") {
		t.Errorf("a second writer: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	const episodes, turns = 40, 8
	path := filepath.Join(t.TempDir(), "tape")
	r, err := record.OpenTape(path, false, quiet)
	if err != nil {
		t.Fatal(err)
	}
	said := func(ep, turn int) *record.Exchange {
		var messages []string
		for i := range turn + 1 {
			messages = append(messages, fmt.Sprint("message ", ep, " ", i))
		}
		return agent(fmt.Sprint("e", ep), turn, 0, messages...)
	}
	each := func(do func(ep int)) {
		var all sync.WaitGroup
		for ep := range episodes {
			all.Go(func() { do(ep) })
		}
		all.Wait()
	}
	each(func(ep int) {
		for turn := range turns {
			if err := r.Add(said(ep, turn)); err != nil {
				t.Error(err)
			}
		}
		r.Forget(fmt.Sprint("e", ep), 1)
		if err := r.Sync(); err != nil {
			t.Error(err)
		}
	})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	played := open(t, path)
	each(func(ep int) {
		for turn := range turns {
			want := said(ep, turn)
			if got, err := played.Next(want.Asker, turn, want.Request); err != nil || !bytes.Equal(got.Body, want.Body) {
				t.Errorf("episode %d turn %d: %v", ep, turn, err)
			}
		}
	})
}

// BenchmarkAdd records turns of a conversation of some 60 KB, as an episode's middle has it.
func BenchmarkAdd(b *testing.B) {
	r, err := record.OpenTape(filepath.Join(b.TempDir(), "tape"), false, quiet)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	base := strings.Repeat("some output of some command\n", 2000)
	body := []byte(strings.Repeat(`data: {"choices":[{"delta":{"content":"word"}}]}`+"\n\n", 60))
	exchanges := make([]*record.Exchange, 16)
	for turn := range exchanges {
		x := agent("a", turn, 0, base, strings.Repeat("and then more of it, ", 100*turn))
		x.Body = body
		exchanges[turn] = x
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := r.Add(exchanges[i%len(exchanges)]); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzOpen has a tape be anything.
func FuzzOpenReplay(f *testing.F) {
	path := filepath.Join(f.TempDir(), "tape")
	r, err := record.OpenTape(path, false, quiet)
	if err != nil {
		f.Fatal(err)
	}
	for _, x := range []*record.Exchange{agent("a", 0, 0, "hi"), agent("a", 1, 0, "hi", "there")} {
		if err := r.Add(x); err != nil {
			f.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		f.Fatal(err)
	}
	seed, _ := os.ReadFile(path)
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "tape")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		played, err := record.OpenReplay(path, quiet)
		if err != nil {
			return
		}
		defer played.Close()
		for turn := range 3 {
			_, _ = played.Next(record.Asker{Episode: "a", Attempt: 1}, turn, ask("hi", "there"))
		}
	})
}
