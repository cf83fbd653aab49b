package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"trajgen/pipeline/episode"
)

// Planter puts faults into an episode's calls of any tool. It belongs to one attempt at an episode and is one of
// SessionConfig.Services. Many goroutines call it.
type Planter interface {
	// Plant is asked about each call of a tool that the episode has, before it runs: of the calls of a turn in their order, also of
	// calls that then run side by side. Nil leaves the call alone.
	Plant(call PlantCall) *Fault
}

// PlantCall is a call that could get a fault.
type PlantCall struct {
	Session *Session
	Tool    *Tool
	Place   episode.Place
	// Trace is the call's record so far, with its arguments as the tool would get them but for defaults. It must not be kept.
	Trace *episode.ToolCall
	// Refused says that the arguments do not fit. Such a call can only be mended, with Arguments of the Fault.
	Refused bool
	// Again says that the call has had a fault, and is repeated in spite of it: only what lasts strikes it.
	Again bool
	// Beside is the last call of the same tool before this one in its turn; nil without one.
	Beside *episode.Place
}

// Fault is what becomes of one call. One of Refuse, Around and Exchange is set, or none where Arguments are.
type Fault struct {
	// Planted stands in the trace, with what the tool really said. Without an Effect at the end of the call, the fault found nothing to
	// change, and leaves no trace.
	Planted episode.Planted
	// Arguments are read in place of those that the model wrote; "" leaves these.
	Arguments string
	// Refuse answers instead of the search for the tool and its arguments.
	Refuse *Failure
	// Around answers the call, by run or without. The result that run returns has no secrets. When the tool is broken or the sandbox
	// is lost, that is what the call ends with, whatever Around returns.
	Around func(ctx context.Context, env *Env, run func(context.Context) (string, error)) (string, error)
	// Retry is how often the call is repeated before the model learns of an error that the fault made.
	Retry int
	// Exchange has this call show the result of the one Beside it, and the other way round, once the calls of the turn have ended and
	// if both succeeded with different results. For each of the two it says what stands in place of what.
	Exchange func(real, shown string) *episode.PlantedTarget
}

// Charge puts time on the agent's clock that has not passed.
func (e *Env) Charge(d time.Duration) {
	if charge := e.Session.cfg.Charge; charge != nil {
		charge(d)
	}
}

// faulted is a call with its fault, if it has one.
type faulted struct{ *prepared }

// plant asks for a fault.
func (p faulted) plant(tool *Tool) {
	planter := p.session.planter
	if planter == nil {
		return
	}
	call := PlantCall{Session: p.session, Tool: tool, Place: p.place, Trace: &p.call, Refused: p.refused != nil}
	beside := p.session.beside(p.prepared)
	if beside != nil {
		call.Beside = &beside.place
	}
	if p.fault = planter.Plant(call); p.fault == nil {
		return
	}
	if p.fault.Exchange != nil {
		p.crossed = &crossed{with: beside, fault: p.fault}
	}
	if p.fault.Arguments != "" {
		p.refused = nil
		p.read(tool, p.fault.Arguments)
	}
	if p.refused == nil {
		p.refused = p.fault.Refuse
	}
}

// ask has the call answered by its tool, or by a twin.
func (p faulted) ask(ctx context.Context) (text string, err error) {
	if p.twin != nil {
		return twinned(p).answer(ctx)
	}
	return p.execute(ctx)
}

// answer answers the call.
func (p faulted) answer(ctx context.Context) (text string, err error) {
	if p.fault == nil || p.fault.Around == nil {
		return p.ask(ctx)
	}
	text, err = p.around(ctx)
	first := p.fault
	for retry := 1; err != nil && p.fault != nil && retry <= first.Retry && ctx.Err() == nil; retry++ {
		again := p.session.planter.Plant(PlantCall{Session: p.session, Tool: p.tool, Place: p.place, Trace: &p.call, Again: true})
		if again == nil || again.Around == nil {
			again = &Fault{Around: func(ctx context.Context, _ *Env, run func(context.Context) (string, error)) (string, error) {
				return run(ctx)
			}}
		}
		p.fault = again
		if text, err = p.around(ctx); p.fault == nil {
			return text, err // it is broken, which no fault may hide
		}
		said := again.Planted
		if first.Planted.Effect = said.Effect; said.Effect == "" { // the tool answered
			first.Planted.Effect = episode.EffectDone
		}
		first.Planted.Retries, first.Planted.RealStatus, first.Planted.RealErrorClass, first.Planted.RealResult = retry, said.RealStatus, said.RealErrorClass, said.RealResult
		p.fault = first
	}
	return text, err
}

// around answers a call that has a fault.
func (p faulted) around(ctx context.Context) (text string, err error) {
	f, ran := p.fault, false
	var broken error
	tool := func(ctx context.Context) (string, error) {
		exit, source := p.call.ExitCode, p.call.Source
		text, err := p.ask(ctx)
		text = p.mask(text)
		if err != nil && broken == nil && p.real(ctx, err) {
			broken = err
		}
		if ran { // a second time, of which the model learns nothing
			p.call.ExitCode, p.call.Source = exit, source
			return text, err
		}
		ran = true
		f.Planted.RealStatus, f.Planted.RealResult = episode.CallOK, text
		if err != nil && broken == nil {
			said := p.told(err)
			f.Planted.RealStatus, f.Planted.RealErrorClass = cmp.Or(said.Status, episode.CallError), cmp.Or(said.Class, "error")
			said, err = twinned(p).plain(said)
			if err != nil {
				broken = err
				return "", err
			}
			f.Planted.RealResult, _ = said.text()
			return "", said
		}
		return text, err
	}
	err = attempt(func() error { text, err = f.Around(ctx, &p.env, tool); return err })
	if p.env.ExitCode != nil {
		p.call.ExitCode = p.env.ExitCode
	}
	if broken != nil {
		p.fault = nil
		return "", broken
	}
	return text, err
}

// real reports whether an error is trouble that no fault may hide.
func (p faulted) real(ctx context.Context, err error) bool {
	return untold(ctx, err) || p.told(err).Broken
}

// record completes the record of a fault.
func (p faulted) record() {
	if p.fault == nil || p.fault.Planted.Effect == "" {
		return
	}
	planted := p.fault.Planted
	planted.RealResult = fitResult(planted.RealResult, p.limit(), "")
	if t := planted.Target; t != nil {
		t.True, _ = p.session.cfg.Secrets.mask(t.True)
	}
	p.call.Planted = &planted
}

// Unknown is what a call of a tool gets that is not in the toolset, if others of it are gone, too.
func (t *Toolset) Unknown(name string, gone ...string) *Failure {
	left := &Toolset{}
	for _, each := range t.names {
		if each != name && !slices.Contains(gone, each) {
			left.names = append(left.names, each)
		}
	}
	return left.unknown(name)
}

// Refuse is what a call with these arguments gets; nil if they fit.
func (t *Tool) Refuse(arguments string) *Failure {
	if _, problems := t.plan().parse(arguments); problems != nil {
		return t.invalid(problems)
	}
	return nil
}

// Late is what a call gets that did not end in time.
func (t *Tool) Late() *Failure { return t.late("timeout") }

// Cut is a result as it is shown when it is longer than a limit.
func Cut(result string, limit int) string { return fitResult(result, limit, "") }

// Example are arguments that fit the tool.
func (t *Tool) Example() json.RawMessage { return json.RawMessage(t.plan().example(nil)) }
