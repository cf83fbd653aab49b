package compress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"trajgen/outputs/compress"
	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is an episode of so many turns, each with a call whose result has 400 bytes, and an answer. Call ids repeat, as
// some servers make them.
func long(turns int) *episode.Episode {
	key := episode.Key{Task: "long", Sample: turns}
	ep := &episode.Episode{
		ID: key.ID(), Key: key, Outcome: episode.Success, Stop: episode.StopAnswered, Reward: new(1.0),
		Messages: []episode.Message{{Role: "system", Content: "Be good."}, {Role: "user", Content: "Do it."}},
		Drift:    &episode.Drift{Verdict: episode.DriftNone},
	}
	for n := range turns {
		arguments := fmt.Sprintf(`{"path":"src/%d.go"}`, n%3)
		status, result := episode.CallOK, fmt.Sprintf("%d %s", n, strings.Repeat("abc ", 100))
		if n%4 == 1 {
			status, result = episode.CallTimeout, "no answer\nwithin 10 s "+strings.Repeat("x", 400)
		}
		id := fmt.Sprint("call_", n%2)
		ep.Turns = append(ep.Turns, episode.Turn{Index: n, Message: len(ep.Messages), Tokens: &episode.TurnTokens{}})
		ep.Messages = append(ep.Messages,
			episode.Message{Role: "assistant", Content: fmt.Sprint("turn ", n), Calls: []episode.Call{{ID: id, Name: "read_file", Arguments: arguments}}},
			episode.Message{Role: "tool", ToolCallID: id, Name: "read_file", Content: result})
		ep.Calls = append(ep.Calls,
			episode.ToolCall{ID: id, Turn: n, Name: "read_file", RawArguments: arguments, Arguments: json.RawMessage(arguments), Status: status, Result: result},
			episode.ToolCall{ID: id + ".1", Parent: id, Turn: n, Name: "nested", Status: episode.CallError})
	}
	ep.Turns = append(ep.Turns, episode.Turn{Index: turns, Message: len(ep.Messages)})
	ep.Messages = append(ep.Messages, episode.Message{Role: "assistant", Content: "done"})
	return ep
}

// fourBytes is a token of four bytes.
func fourBytes(ep *episode.Episode) compress.Ruler {
	return compress.Ruler{Message: func(m *episode.Message) int {
		n := len(m.Content) + len(m.Reasoning)
		for _, call := range m.Calls {
			n += len(call.Arguments)
		}
		return n/4 + 4
	}}
}

func run(t *testing.T, o compress.Options, episodes ...*episode.Episode) (fitted []*episode.Episode, marks []compress.Mark) {
	t.Helper()
	if o.Measure == nil {
		o.Measure = fourBytes
	}
	o.Mark = func(m compress.Mark) error { marks = append(marks, m); return nil }
	source, err := compress.New(sinktest.Slice(episodes), o)
	if err != nil {
		t.Fatal(err)
	}
	for ep, err := range source.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		fitted = append(fitted, ep)
	}
	return fitted, marks
}

// size is what a ruler says of an episode.
func size(ep *episode.Episode) (n int) {
	ruler := fourBytes(ep)
	for i := range ep.Messages {
		n += ruler.Message(&ep.Messages[i])
	}
	return n
}

func TestCompress(t *testing.T) {
	withUser := func() *episode.Episode {
		ep := long(20)
		at := ep.Turns[5].Message
		ep.Messages = append(ep.Messages[:at:at], append([]episode.Message{{Role: "user", Content: "And mind the tests!"}}, ep.Messages[at:]...)...)
		for i := 5; i < len(ep.Turns); i++ {
			ep.Turns[i].Message++
		}
		return ep
	}
	stray := long(20)
	stray.Messages[4].Calls = nil                                                                      // the turn has a result without its call,
	stray.Messages[len(stray.Messages)-2].ToolCallID, stray.Messages[6].Calls[0].ID = "stray", "stray" // and a late one answers an early call
	stray.Messages[7].ToolCallID = "other"
	tests := []struct {
		name   string
		give   *episode.Episode
		budget int
		head   int
		tail   int
		status compress.Status
		from   int
		reason string
	}{
		{"fits", long(20), 5000, 1, 4, compress.Fits, 0, ""},
		{"compressed", long(20), 1600, 1, 4, compress.Compressed, 4, ""},
		{"no head", long(20), 1600, 0, 4, compress.Compressed, 2, ""},
		{"no tail", long(20), 400, 0, 0, compress.Compressed, 2, ""},
		{"the user's words", withUser(), 1600, 1, 4, compress.Compressed, 4, ""},
		{"all protected", long(5), 420, 3, 3, compress.CannotFit, 0, "all of its 6 turns are protected"},
		{"too small a budget", long(20), 500, 1, 4, compress.CannotFit, 0, "what is protected and a summary are over the budget"},
		{"nothing was said", &episode.Episode{ID: "x", Messages: []episode.Message{{Role: "user", Content: strings.Repeat("x", 9000)}}}, 500, 1, 4, compress.CannotFit, 0, "all of its 0 turns are protected"},
		{"a stray result", stray, 1600, 0, 4, compress.CannotFit, 0, "results do not follow their calls"},
		{"empty", &episode.Episode{ID: "x"}, 500, 1, 4, compress.Fits, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := json.Marshal(tt.give)
			fitted, marks := run(t, compress.Options{Budget: tt.budget, HeadTurns: tt.head, TailTurns: tt.tail, SummaryTokens: 200}, tt.give)
			ep, mark := fitted[0], marks[0]
			if mark.Status != tt.status || mark.Reason != tt.reason || mark.From != tt.from || mark.ID != tt.give.ID {
				t.Fatalf("mark = %+v", mark)
			}
			if mark.Before != size(tt.give) || mark.After != size(ep) || mark.After > tt.budget && tt.status != compress.CannotFit {
				t.Errorf("from %d to %d tokens; it had %d and has %d", mark.Before, mark.After, size(tt.give), size(ep))
			}
			last := ep.Compactions[len(ep.Compactions)-1]
			if last.Strategy != compress.Outline || last.Before != mark.Before || last.After != mark.After || last.Failed != tt.reason || last.Turn != len(ep.Turns) {
				t.Errorf("compaction = %+v", last)
			}
			if after, _ := json.Marshal(tt.give); string(before) != string(after) {
				t.Error("the episode that was given was changed")
			}
			if mark.Least > 0 {
				if _, marks := run(t, compress.Options{Budget: mark.Least, HeadTurns: tt.head, TailTurns: tt.tail, SummaryTokens: 200}, tt.give); marks[0].Status == compress.CannotFit {
					t.Errorf("with the least budget: %+v", marks[0])
				}
			}
			if tt.status != compress.Compressed {
				if diff := cmp.Diff(tt.give.Messages, ep.Messages); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
				return
			}
			checkShort(t, tt.give, ep, mark, tt.head, tt.tail)
		})
	}
}

// checkShort holds that an episode is what was played, but for the middle.
func checkShort(t *testing.T, was, ep *episode.Episode, mark compress.Mark, head, tail int) {
	t.Helper()
	want := append(append(was.Messages[:mark.From:mark.From], ep.Messages[mark.From]), was.Messages[mark.To:]...)
	if diff := cmp.Diff(want, ep.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	stands := ep.Messages[mark.From]
	if stands.Role != "user" || !stands.Harness {
		t.Errorf("what stands for the middle is %+v, want the harness's", stands)
	}
	if strings.Contains(fmt.Sprint(was.Messages), "mind the tests") != strings.Contains(stands.Content, "And mind the tests!") {
		t.Errorf("the user's words are not in %q", stands.Content)
	}
	if mark.Turns != len(was.Turns)-len(ep.Turns) || mark.Turns < 2 || len(ep.Turns) < head+tail || len(ep.Calls) != len(was.Calls)-2*mark.Turns {
		t.Errorf("%d turns and %d calls left of %d and %d; the mark says %+v", len(ep.Turns), len(ep.Calls), len(was.Turns), len(was.Calls), mark)
	}
	for i, turn := range ep.Turns {
		if turn.Index != i || turn.Tokens != nil || ep.Messages[turn.Message].Role != "assistant" {
			t.Errorf("turn %d: %+v", i, turn)
		}
	}
	for _, call := range ep.Calls {
		if m := ep.Messages[ep.Turns[call.Turn].Message]; call.Parent == "" && (len(m.Calls) != 1 || m.Calls[0].Arguments != call.RawArguments) {
			t.Errorf("the call %+v is not that of its turn", call)
		}
	}
	open := ""
	for _, m := range ep.Messages {
		if m.Role == "tool" && m.ToolCallID != open {
			t.Errorf("result of %s behind the call %q", m.ToolCallID, open)
		}
		if open = ""; len(m.Calls) > 0 {
			open = m.Calls[0].ID
		}
	}
	if ep.Drift != nil {
		t.Error("the drift is that of other tokens")
	}
}

func TestOutline(t *testing.T) {
	fitted, marks := run(t, compress.Options{Budget: 1600, HeadTurns: 1, TailTurns: 4, SummaryTokens: 300}, long(20))
	want := fmt.Sprintf(`[To make this conversation shorter, %d turns with %d calls of tools were left out here. This stands for them.]

Tools that were called:
- read_file: 9 times, of which 3 failed
Files that the calls name:
- src/1.go
- src/2.go
- src/0.go
What failed last:
- read_file: timeout: no answer within 10 s `, marks[0].Turns, marks[0].Calls)
	got := fitted[0].Messages[marks[0].From].Content
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	for _, part := range []string{"The results have ", "The assistant said last: turn 9"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

func TestSummaryByModel(t *testing.T) {
	say := func(text string, err error) func(context.Context, compress.Ask) (compress.Summary, error) {
		return func(_ context.Context, ask compress.Ask) (compress.Summary, error) {
			if !strings.Contains(ask.Text, "calls read_file with") || strings.Contains(ask.Text, "Be good.") || len(ask.Text) > 3000 {
				err = errors.Join(err, fmt.Errorf("asked about %q", ask.Text))
			}
			return compress.Summary{Text: text, Model: "m", Usage: episode.Usage{Prompt: 9, Reported: true}}, err
		}
	}
	options := compress.Options{Budget: 1600, HeadTurns: 1, TailTurns: 4, SummaryTokens: 200, MaxText: 3000}

	options.Summarise = say("I read files.", nil)
	fitted, marks := run(t, options, long(20))
	if m := marks[0]; m.Status != compress.Compressed || m.By != "model" || m.Model != "m" || m.Usage.Prompt != 9 || m.Cut {
		t.Errorf("mark = %+v", m)
	}
	if c := fitted[0].Compactions[0]; c.Strategy != episode.CompactSummarize || c.Model != "m" || c.Usage == nil || !strings.Contains(fitted[0].Messages[4].Content, "\n\nI read files.") {
		t.Errorf("compaction = %+v", c)
	}

	options.Summarise = say(strings.Repeat("wörter ", 5000), nil)
	if _, marks := run(t, options, long(20)); marks[0].Status != compress.Compressed || !marks[0].Cut || marks[0].After > 1600 || marks[0].After < 1300 {
		t.Errorf("an endless summary: %+v", marks[0])
	}

	options.Summarise = say(" \n", nil)
	if fitted, marks := run(t, options, long(20)); marks[0].Status != compress.CannotFit || !strings.Contains(marks[0].Reason, "said nothing") || len(fitted[0].Messages) != 43 {
		t.Errorf("no summary: %+v", marks[0])
	}

	options.Summarise = say("", fmt.Errorf("%w: content_policy", compress.ErrNoSummary))
	if _, marks := run(t, options, long(20)); marks[0].Status != compress.CannotFit || marks[0].Reason != "no summary: content_policy" {
		t.Errorf("a refused summary: %+v", marks[0])
	}

	down := errors.New("down")
	options.Summarise, options.Measure, options.Workers = say("", down), fourBytes, 3
	source, err := compress.New(sinktest.Slice([]*episode.Episode{long(3), long(20), long(21), long(22)}), options)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range source.Episodes(t.Context()) {
		n++
	}
	if !errors.Is(err, down) || n != 2 {
		t.Errorf("a model that is down: %v after %d", err, n)
	}
}

// TestOrderAndEnd holds that many workers keep the order, and that none is left when the reader goes away or the
// context ends.
func TestOrderAndEnd(t *testing.T) {
	var episodes []*episode.Episode
	for n := range 40 {
		ep := long(15)
		ep.ID = fmt.Sprint(n)
		episodes = append(episodes, ep)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stop := errors.New("stop")
	var asked atomic.Int64
	source, err := compress.New(sinktest.Slice(episodes), compress.Options{
		Budget: 1000, TailTurns: 1, SummaryTokens: 100, Workers: 8, Measure: fourBytes,
		Summarise: func(context.Context, compress.Ask) (compress.Summary, error) {
			asked.Add(1)
			return compress.Summary{Text: "s"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ep, err := range source.Episodes(ctx) {
		if n == 10 {
			cancel(stop)
		}
		if n > 10 {
			if err != nil && !errors.Is(err, stop) {
				t.Errorf("error %v", err)
			}
			break
		}
		if err != nil || ep.ID != fmt.Sprint(n) {
			t.Fatalf("episode %d: %v, %v", n, ep, err)
		}
		n++
	}
	if asked.Load() > 20 {
		t.Errorf("%d summaries were asked for", asked.Load())
	}
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	_, err := compress.New(sinktest.Slice(nil), compress.Options{Budget: -1, TailTurns: -1, SummaryTokens: 3, Workers: -1})
	for _, want := range []string{"budget is -1", "-1 tail turns", "3 tokens for a summary", "-1 workers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (compress.Options{Budget: 1000}).Validate(); err == nil || !strings.Contains(err.Error(), "want 50 to half of the budget, 500") {
		t.Errorf("a summary of three quarters of the budget: %v", err)
	}
}

func TestSummariesAreAskedForOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	var asked atomic.Int64
	get := func(s *compress.Summaries, by, text string) (compress.Summary, error) {
		return s.Get(t.Context(), by, compress.Ask{Text: text, MaxTokens: 9}, func(context.Context, compress.Ask) (compress.Summary, error) {
			asked.Add(1)
			if text == "bad" {
				return compress.Summary{}, errors.New("down")
			}
			return compress.Summary{Text: "<" + text + ">", Model: by, Usage: episode.Usage{Prompt: 1, Reported: true}}, nil
		})
	}
	open := func() *compress.Summaries {
		t.Helper()
		s, err := compress.OpenSummaries(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if _, err := compress.OpenSummaries(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := get(s, "m", "a")
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, call := range [][2]string{{"m", "b"}, {"other", "a"}, {"m", "bad"}, {"m", "bad"}} {
		_, _ = get(s, call[0], call[1])
	}
	if asked.Load() != 5 || s.Len() != 3 {
		t.Errorf("asked %d times, %d kept", asked.Load(), s.Len())
	}
	s.Close()

	// A crash in the middle of a line.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"key":"12`)
	f.Close()
	s = open()
	if got, err := get(s, "m", "b"); err != nil || got.Text != "<b>" || got.Model != "m" || got.Usage.Prompt != 1 || asked.Load() != 5 {
		t.Errorf("after a crash: %+v, %v, asked %d times", got, err, asked.Load())
	}
	if _, err := get(s, "m", "c"); err != nil || s.Len() != 4 {
		t.Errorf("after a crash: %v, %d kept", err, s.Len())
	}
	s.Close()
	s = open()
	if s.Len() != 4 {
		t.Errorf("%d kept", s.Len())
	}
	s.Close()

	for _, damage := range []string{"{}\n", "[\n", `{"key":"00"}` + "\n"} {
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := compress.OpenSummaries(path); err == nil || !strings.Contains(err.Error(), "line 1 of "+path+" is not a summary") {
			t.Errorf("%s: %v", damage, err)
		}
	}
}

// What the choice before leaves out is counted as in an export without compression.
func TestChoiceIsCounted(t *testing.T) {
	one, two := long(1), long(1)
	two.ID = "two"
	source, err := export.Choose(sinktest.Slice([]*episode.Episode{one, two}), export.Choice{Where: `id == "two"`})
	if err != nil {
		t.Fatal(err)
	}
	if source, err = compress.New(source, compress.Options{Budget: 1 << 20, Measure: fourBytes}); err != nil {
		t.Fatal(err)
	}
	sink, err := export.Open("jsonl", filepath.Join(t.TempDir(), "out.jsonl"), export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := export.Write(t.Context(), source, sink)
	if err != nil || result.Episodes != 1 || result.Dropped["the condition does not hold"] != 1 {
		t.Errorf("%+v, %v; want one episode, and one left out", result, err)
	}
}

func TestMarksAreWholeOrNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.jsonl")
	if err := os.WriteFile(path, []byte("earlier"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() *export.WholeLines[compress.Mark] {
		t.Helper()
		m, err := export.NewWholeLines[compress.Mark](path)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Add(compress.Mark{ID: "a", Status: compress.Fits}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	read := func() string {
		data, _ := os.ReadFile(path)
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
		return fmt.Sprint(string(data), left)
	}
	m := begin()
	if _, err := export.NewWholeLines[compress.Mark](path); err == nil || !strings.Contains(err.Error(), "another export is writing ") {
		t.Errorf("begun twice: %v", err)
	}
	if err := m.Close(); err != nil || read() != "earlier[]" {
		t.Errorf("closed without a commit: %v, %s", err, read())
	}
	m = begin()
	info, err := m.Commit()
	if err != nil || info.Rows != 1 || m.Close() != nil || !strings.HasPrefix(read(), `{"id":"a",`) || !strings.HasSuffix(read(), "}\n[]") {
		t.Errorf("committed: %v, %+v, %s", err, info, read())
	}
	if _, err := export.NewWholeLines[compress.Mark](filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("below a file: %v", err)
	}
}

// TestHostileEpisodes has turns, calls and compactions that point nowhere, as a file of unknown origin may.
func TestHostileEpisodes(t *testing.T) {
	ep := long(20)
	ep.Turns[0].Message, ep.Turns[1].Message, ep.Turns[2].Message = -5, 1<<40, 3
	ep.Calls[0].Turn, ep.Calls[1].Turn, ep.Calls[2].Turn, ep.Calls[3].Arguments = -1, 99, 1<<40, json.RawMessage("{")
	ep.Compactions = []episode.Compaction{{Turn: -3, From: -1, To: 1 << 40, Summary: "x"}, {Turn: 1 << 40}}
	for i := range ep.Messages {
		ep.Messages[i].ToolCallID = "same"
	}
	for _, options := range []compress.Options{{Budget: 1600, SummaryTokens: 200}, {Budget: 1600, HeadTurns: 1, TailTurns: 4, SummaryTokens: 200}, {Budget: 1600, HeadTurns: 1 << 40, SummaryTokens: 200}} {
		fitted, marks := run(t, options, ep)
		if len(fitted) != 1 || len(marks) != 1 {
			t.Errorf("%d episodes, %d marks", len(fitted), len(marks))
		}
		for _, c := range fitted[0].Compactions[:2] {
			if marks[0].Status == compress.Compressed && (c.Turn < 0 || c.Turn > len(fitted[0].Turns) || c.To != 0) {
				t.Errorf("compaction %+v of %d turns", c, len(fitted[0].Turns))
			}
		}
	}
}

// TestDatasetsOwnWords has a dataset whose prompt begins with an exchange. That is no turn of the model's, and stays.
func TestDatasetsOwnWords(t *testing.T) {
	ep := long(12)
	example := []episode.Message{{Role: "user", Content: "For example?"}, {Role: "assistant", Content: "an example " + strings.Repeat("abc ", 200)}}
	ep.Messages = append(append([]episode.Message{ep.Messages[0]}, example...), ep.Messages[1:]...)
	for i := range ep.Turns {
		ep.Turns[i].Message += len(example)
	}
	fitted, marks := run(t, compress.Options{Budget: 900, SummaryTokens: 100, TailTurns: 2}, ep)
	if marks[0].Status != compress.Compressed || marks[0].From < 4 || fitted[0].Messages[2].Content != ep.Messages[2].Content {
		t.Errorf("cut %+v, third message %.30q", marks[0], fitted[0].Messages[2].Content)
	}
}

// TestImagesOfTheUserStay has the user show an image in the part that is left out.
func TestImagesOfTheUserStay(t *testing.T) {
	ep := long(12)
	image := episode.Part{Type: episode.PartImage, SHA256: "ab", MIME: "image/png", Width: 750, Height: 10, Bytes: 5}
	ep.Messages[10] = episode.Message{Role: "user", Content: "Look at this.", Parts: []episode.Part{image}}
	ep.Turns = slices.DeleteFunc(ep.Turns, func(turn episode.Turn) bool { return turn.Message == 10 })
	ep.Messages = slices.Delete(ep.Messages, 11, 12)
	for i := range ep.Turns {
		if ep.Turns[i].Index = i; ep.Turns[i].Message > 10 {
			ep.Turns[i].Message--
		}
	}
	fitted, marks := run(t, compress.Options{Budget: 700, HeadTurns: 1, TailTurns: 2, SummaryTokens: 200}, ep)
	if marks[0].Status != compress.Compressed || marks[0].From > 10 || marks[0].To <= 10 {
		t.Fatalf("%+v", marks[0])
	}
	m := fitted[0].Messages[marks[0].From]
	last := m.Parts[len(m.Parts)-3:]
	want := []episode.Part{{Type: episode.PartText, Text: "[The user said meanwhile:]"}, {Type: episode.PartText, Text: "Look at this."}, image}
	if diff := cmp.Diff(want, last); diff != "" || !strings.HasSuffix(m.Content, "[The user said meanwhile:]\n\nLook at this.") {
		t.Errorf("%q, parts (-want +got):\n%s", m.Content, diff)
	}
}
