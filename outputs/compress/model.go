package compress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// Writer has a model write summaries, each once. Many goroutines may use it.
type Writer struct {
	Had int // summaries that existed before

	client *model.Client
	kept   *Summaries
	by     string // the model and the settings that decide its answers
	asked  atomic.Int64
}

// NewWriter takes over a client, and keeps in the file of that path what the model writes. by names the model with all that
// decides its answers.
func NewWriter(client *model.Client, by, path string) (*Writer, error) {
	kept, err := OpenSummaries(path)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Writer{Had: kept.Len(), client: client, kept: kept, by: by}, nil
}

// Close closes the client and the file.
func (w *Writer) Close() error { return errors.Join(w.kept.Close(), w.client.Close()) }

// Asked is how many summaries the model was asked for.
func (w *Writer) Asked() int { return int(w.asked.Load()) }

// MaxText is how many bytes of a conversation the model can be given; 0 when that is not known.
func (w *Writer) MaxText(reply int) int {
	window := w.client.Window()
	if window <= 0 {
		return 0
	}
	return max(window-2*reply, window/4) * 3 // of the four bytes that a token has, more or less
}

// Summarise is Options.Summarise.
func (w *Writer) Summarise(ctx context.Context, ask Ask) (Summary, error) {
	return w.kept.Get(ctx, w.by, ask, func(ctx context.Context, ask Ask) (Summary, error) {
		w.asked.Add(1)
		return w.ask(context.WithoutCancel(ctx), ask) // a request in flight is paid for, so its summary is kept
	})
}

func (w *Writer) ask(ctx context.Context, ask Ask) (summary Summary, err error) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(ask.Text))
	seed := int(hash.Sum64() >> 33) // from the request, so that equal requests have equal seeds
	reply, err := w.client.Complete(ctx, model.Request{
		Messages: []episode.Message{{Role: "system", Content: Instruction}, {Role: "user", Content: ask.Text}},
		Seed:     &seed, MaxTokens: ask.MaxTokens, Asker: model.Asker{Episode: ask.Episode, Task: ask.Task},
	})
	failed, ok := errors.AsType[*model.Error](err)
	switch {
	case err == nil:
		return Summary{Text: reply.Message.Content, Model: cmp.Or(reply.Model, "unknown"), Usage: reply.Usage}, nil
	case ok && (failed.Class == model.ClassBadRequest || failed.Class == model.ClassContentPolicy ||
		failed.Class == model.ClassContextOverflow || failed.Class == model.ClassRequestTooLarge):
		return summary, fmt.Errorf("%w: %s", ErrNoSummary, failed.Class)
	}
	return summary, fmt.Errorf("summary model: %w", err)
}

// Measure estimates the tokens of an episode by the ratio of tokens to bytes that the server of its last turn counted. Reasoning,
// which was not sent, counts at the same ratio, as it is in the training data.
func Measure(ep *episode.Episode) Ruler {
	var counter model.Counter
	learned := false
	for i := len(ep.Turns) - 1; i >= 0 && !learned; i-- {
		turn := &ep.Turns[i]
		if !turn.Usage.Reported || turn.Usage.Prompt <= 0 || turn.Message < 0 || turn.Message > len(ep.Messages) {
			continue
		}
		sent := ep.Sent(i)
		// A larger count is of something else.
		if turn.Usage.Prompt <= model.PromptBound(model.Request{Messages: sent, Tools: ep.Tools}) {
			counter.Learn(sent, ep.Tools, turn.Usage.Prompt)
			learned = true
		}
	}
	counter.Forget()
	return Ruler{
		Tools: counter.Count(nil, ep.Tools), Learned: learned,
		Message: func(m *episode.Message) int {
			one := *m
			one.Content += one.Reasoning
			return counter.Count([]episode.Message{one}, nil)
		},
	}
}
