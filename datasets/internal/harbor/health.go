package harbor

import (
	"cmp"
	"fmt"
	"time"
)

// health is a command that says whether the environment is well.
type health struct {
	Command       string
	Interval      float64 `json:"interval_sec"`
	Timeout       float64 `json:"timeout_sec"`
	Start         float64 `json:"start_period_sec"`
	StartInterval float64 `json:"start_interval_sec"`
	Retries       float64
}

// script waits until the environment is well, and fails when it never is.
func (h health) script() string {
	return fmt.Sprintf(`began=$SECONDS failed=0
until timeout %g bash -c %s; do
	if [ $((SECONDS - began)) -lt %.0f ]; then sleep %g; continue; fi
	failed=$((failed + 1))
	if [ "$failed" -ge %.0f ]; then echo "the health check failed $failed times" >&2; exit 1; fi
	sleep %g
done`, cmp.Or(h.Timeout, 30), quote(h.Command), h.Start, cmp.Or(h.StartInterval, 5), cmp.Or(h.Retries, 3), cmp.Or(h.Interval, 5))
}

// composeHealth is a health check of a compose file.
type composeHealth struct {
	Test     any
	Interval string
	Timeout  string
	Start    string `yaml:"start_period"`
	Often    string `yaml:"start_interval"`
	Retries  float64
	Disable  bool
}

// seconds are a duration of a health check, or what it is without one.
func (t *companions) seconds(at, text string, otherwise float64) float64 {
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.wrongf("%s: %q, want a duration such as 5s", at, text)
	}
	return d.Seconds()
}

// test is the command of a health check; nil is none.
func (t *companions) test(at string, h *composeHealth) []string {
	if h == nil || h.Disable {
		return nil
	}
	shell := func(text any) []string { return []string{"sh", "-c", t.literal(at+".test", fmt.Sprint(text))} }
	words, list := h.Test.([]any)
	switch {
	case list && len(words) == 1 && words[0] == "NONE":
		return nil
	case list && len(words) > 1 && words[0] == "CMD":
		return t.words(at+".test", words[1:])
	case list && len(words) == 2 && words[0] == "CMD-SHELL":
		return shell(words[1])
	case !list && h.Test != nil:
		return shell(h.Test)
	}
	t.wrongf("%s.test: %v, want a text, or a list that begins with CMD, CMD-SHELL or NONE", at, h.Test)
	return nil
}

// health waits until a service is well.
func (t *companions) health(at string, h *composeHealth, command string) string {
	return health{
		Command: command, Interval: t.seconds(at+".interval", h.Interval, 30), Timeout: t.seconds(at+".timeout", h.Timeout, 30),
		Start: t.seconds(at+".start_period", h.Start, 0), StartInterval: t.seconds(at+".start_interval", h.Often, 5), Retries: h.Retries,
	}.script()
}
