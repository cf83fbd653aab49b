package reward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"trajgen/pipeline/episode"
)

var siteState = kind{
	verify: verifyState, keys: []string{"site_state"}, // which datasets read themselves: an object
	given: func(check episode.Check) bool { return check.SiteState != nil },
}

// verifyState judges what a site holds. A state that cannot be had says nothing about the agent.
func verifyState(ctx context.Context, check episode.Check, subject Subject) (judgement, error) {
	if subject.State == nil {
		return judgement{}, &Broken{Class: "state", Message: "this episode has no sites whose state could be asked for"}
	}
	state, err := subject.State(ctx, check.SiteState.Site)
	switch {
	case err != nil && ctx.Err() != nil:
		return judgement{}, context.Cause(ctx)
	case err != nil:
		return judgement{}, &Broken{Class: "state", Message: fmt.Sprintf("state of site %s: %v", check.SiteState.Site, err)}
	}
	return expected(check.SiteState.Expect, state, "site "+check.SiteState.Site)
}

// getState returns what something of the episode holds, as a JSON object.
type getState func() (json.RawMessage, error)

// held judges what one thing of the episode holds by the expression in a field of the check.
func held(name string, field func(*episode.Check) *string, of func(Subject) getState) kind {
	return kind{
		keys: []string{name}, given: func(check episode.Check) bool { return *field(&check) != "" },
		read: func(check *episode.Check, _ string, value Value) (err error) {
			*field(check), err = value.Text()
			return err
		},
		verify: func(_ context.Context, check episode.Check, subject Subject) (judgement, error) {
			get := of(subject)
			if get == nil {
				return judgement{}, &Broken{Class: "state", Message: "this episode has nothing that " + name + " could judge"}
			}
			state, err := get()
			if err != nil {
				return judgement{}, &Broken{Class: "state", Message: fmt.Sprintf("%s: %v", name, err)}
			}
			return expected(*field(&check), state, name)
		},
	}
}

// expected is the verdict of an expression.
func expected(expression string, state json.RawMessage, where string) (judgement, error) {
	value, err := Expect(expression, state)
	if err != nil {
		return judgement{}, &Broken{Class: "spec", Message: "verify: " + err.Error()}
	}
	return judgement{value: value, detail: fmt.Sprintf("%s is %v for %s", clip(expression), value, where)}, nil
}

// Expect evaluates an expression of github.com/expr-lang/expr over a state, which is a JSON object. It is true, which is 1, or
// false, or a number from 0 to 1. The library bounds its size, its memory and, as it has no loops of its own, its time.
func Expect(expression string, state json.RawMessage) (float64, error) {
	var names map[string]any
	if err := json.Unmarshal(state, &names); err != nil {
		return 0, fmt.Errorf("read the state of a site: %w", err)
	}
	if strings.TrimSpace(expression) == "" {
		return 0, errors.New("expect is empty, want an expression")
	}
	program, err := expr.Compile(expression, expr.Env(names))
	var got any
	if err == nil {
		got, err = vm.Run(program, names)
	}
	if err != nil {
		return 0, fmt.Errorf("expect %q: %s", clip(expression), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	value := -1.0
	switch got := got.(type) {
	case bool:
		value = verdict(got)
	case int:
		value = float64(got)
	case float64:
		value = got
	}
	if !(value >= 0 && value <= 1) { // nor is it NaN
		return 0, fmt.Errorf("expect %q is %v, want true, false or a number from 0 to 1", clip(expression), clip(fmt.Sprint(got)))
	}
	return value, nil
}
