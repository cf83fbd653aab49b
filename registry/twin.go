package registry

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Twin stands for tools that answer from outside of the sandbox (Definition.Outside): it keeps what they answer, or answers in
// their place. It belongs to one attempt at an episode and is one of SessionConfig.Services. Many goroutines call it.
type Twin interface {
	// Begin is told of each call of such a tool before it runs, in call order, also of calls that then run side by side.
	// What it returns gives the answer; nil leaves the call to the tool.
	Begin(call TwinCall) TwinAnswer
}

// TwinAnswer gives the answer to a call, by live or without. The arguments are those that the tool gets, as a hook may have
// changed them. Live calls the tool; its error does not answer the call, but means the end of the episode, a lost sandbox or a bug, and is passed on.
type TwinAnswer func(arguments json.RawMessage, live func() (Answer, error)) (Answer, error)

// TwinCall is a call of a tool that answers from outside. Like an Answer, it has no secrets: results show their names instead.
type TwinCall struct {
	Tool        *Tool
	Turn, Index int
	Parent      string          // the call whose script makes this one
	Place       episode.Place   // of those that scripts make, too
	Arguments   json.RawMessage // mended, validated, with defaults
}

// Answer is what a tool came to, before the result is cut to its limit.
type Answer struct {
	Result   string   // JSON text, without a Failure
	Failure  *Failure // the values of its Extra are JSON texts
	Source   json.RawMessage
	ExitCode *int
	Images   []AnswerImage
	Masked   []string // secrets that were replaced
}

// AnswerImage is an image that a tool kept, as it gave it, and showed to the model or not.
type AnswerImage struct {
	Image
	Shown bool
}

// begin tells the twin of a call that will run.
func (p *prepared) begin() {
	if twin := p.session.twin; twin != nil && p.refused == nil && p.tool.Outside != "" {
		p.twin = twin.Begin(TwinCall{
			Tool: p.tool, Turn: p.call.Turn, Index: p.call.Index, Parent: p.call.Parent, Place: p.place, Arguments: p.session.cfg.Secrets.without(p.args.given),
		})
		p.meter.keeps = p.twin != nil
	}
}

// twinned is a call that a twin answers.
type twinned struct{ *prepared }

// answer is what the twin says, which may ask the tool.
func (p twinned) answer(ctx context.Context) (text string, err error) {
	alive := false
	got, err := p.twin(p.session.cfg.Secrets.without(p.args.given), func() (Answer, error) {
		alive = true
		return p.live(ctx)
	})
	if err != nil {
		return "", err
	}
	p.call.Source, p.call.ExitCode, p.call.Masked = got.Source, got.ExitCode, got.Masked
	if !alive {
		for _, image := range got.Images {
			if _, err := p.env.keep(image.Image, image.Shown && p.env.Sees()); err != nil {
				return "", err
			}
		}
		if !got.missed() {
			if err := p.replayed(ctx, got); err != nil {
				return "", err
			}
		}
		p.call.SandboxTime, p.call.Images, _ = p.meter.end()
	}
	if got.Failure != nil {
		return "", got.Failure
	}
	return got.Result, nil
}

// replayed tells the tool that its twin has answered.
func (p twinned) replayed(ctx context.Context, a Answer) error {
	if p.tool.Replayed == nil {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.tool.timeout(), errDeadline)
	defer cancel()
	return attempt(func() error { return p.tool.Replayed(limited, &p.env, p.args.given, a) })
}

// live calls the tool, and takes the secrets out of its answer.
func (p twinned) live(ctx context.Context) (a Answer, err error) {
	text, err := p.execute(ctx)
	if err != nil {
		if untold(ctx, err) {
			return a, err
		}
		if a.Failure, err = p.plain(p.told(err)); err != nil {
			return a, err
		}
	}
	a.Result, a.Source, a.ExitCode = p.mask(text), p.session.cfg.Secrets.without(p.call.Source), p.call.ExitCode
	if p.call.Source == nil {
		a.Source = nil
	}
	a.Images, p.meter.kept = p.meter.kept, nil
	a.Masked = slices.Clone(p.call.Masked)
	return a, nil
}

// plain is a failure of texts without secrets.
func (p twinned) plain(f *Failure) (*Failure, error) {
	clean := *f
	clean.Message, clean.Extra = p.mask(f.Message), nil
	for _, key := range sortedKeys(f.Extra) {
		text, err := encode(f.Extra[key])
		if err != nil {
			return nil, &malformed{err}
		}
		if clean.Extra == nil {
			clean.Extra = map[string]any{}
		}
		clean.Extra[key] = json.RawMessage(p.mask(text))
	}
	return &clean, nil
}

// untold reports whether an error says nothing of what the tool answers: a bug, a lost sandbox, the end of the episode.
func untold(ctx context.Context, err error) bool {
	_, crashed := errors.AsType[*crash](err)
	_, unencoded := errors.AsType[*malformed](err)
	_, closed := errors.AsType[*unopened](err)
	return crashed || unencoded || closed || errors.Is(err, sandbox.ErrGone) || errors.Is(err, errStuck) ||
		ctx.Err() != nil && !isFailure(err)
}

// told is what an error of a tool says to the model.
func (p *prepared) told(err error) *Failure {
	if f, failed := errors.AsType[*Failure](err); failed {
		return f
	}
	if wrong, undecoded := errors.AsType[*problem](err); undecoded {
		return p.tool.invalid([]problem{*wrong})
	}
	if errors.Is(err, errDeadline) || errors.Is(err, context.DeadlineExceeded) {
		return p.tool.late("timeout")
	}
	return p.unexpected("error", err)
}

const twinMiss = "twin_miss"

// missed reports whether the recording lacks the call.
func (a Answer) missed() bool { return a.Failure != nil && a.Failure.Class == twinMiss }

// TwinMiss is a call that a recording cannot answer. That is not the agent's doing; broken ends the episode in a tool_error.
func TwinMiss(tool, why string, broken bool) *Failure {
	return &Failure{
		Class: twinMiss, Status: episode.CallUnavailable, Broken: broken,
		Message: "the recording lacks this call of " + tool + " (" + why + ")",
	}
}
