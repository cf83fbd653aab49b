package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"trajgen/tools/web"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

const maxAnswer = 32 << 20 // bytes

// service is a provider, as a call asks it. One goroutine uses it.
type service struct {
	kind
	*provider.Client
	name, version string
	key           string
	sent          sent
	hasty         bool // a recording answers, so that requests follow without pauses
}

// service is a provider for a call.
func (v *View) service(name, call string) *service {
	own, k := v.config.Settings.Providers[name], kinds[name]
	env := cmp.Or(own.APIKeyEnv, k.keyEnv)
	s := &service{kind: k, name: name, version: name + "/1", key: v.config.Getenv(env), hasty: v.attempt.Web.Mode() == web.Replay}
	s.base = strings.TrimRight(cmp.Or(own.BaseURL, k.base), "/")
	s.sent.next = v.attempt.Web.Through(call, s.version, v.live)
	s.Client = provider.NewClient(provider.ClientConfig{Variable: env, Auth: k.auth, Most: maxAnswer, Judge: s.judge, Config: provider.Config{
		Name: name, BaseURL: s.base, Key: s.key, Transport: &s.sent, Now: v.config.Now, Hasty: s.hasty,
	}})
	return s
}

// ask sends a request. One that makes something is sent again only where the provider says that it has not begun: what is made is
// paid for.
func (s *service) ask(ctx context.Context, method, path string, body, answer any) error {
	return s.Ask(ctx, provider.Request{Method: method, Path: path, JSON: body, Costly: method == http.MethodPost}, answer)
}

// RefusedPrompt is the class of a prompt that a provider's policy refuses.
const RefusedPrompt = "refused_prompt"

// What providers call a refusal of a prompt, and that there is nothing left to pay with, in their errors.
var (
	refusals = []string{"moderation_blocked", "content_policy", "content_filter", "safety_violation", "nsfw"}
	spent    = []string{"insufficient_quota", "quota_exceeded"}
)

// judge knows what errors of these providers mean beside their status.
func (s *service) judge(status int, body []byte) *source.Error {
	says := func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(body, []byte(word)) })
	}
	switch {
	case status < 300:
	case status < 500 && status != 429 && says(refusals):
		return s.refusedPrompt("(status %d): %s", status, s.Excerpt(string(body)))
	case says(spent):
		const what = "its quota is used up, or it wants to be paid (status %d): %s"
		return s.Errorf(source.Operator, source.Refused, what, status, s.Excerpt(string(body)))
	}
	return nil
}

func (s *service) refusedPrompt(why string, args ...any) *source.Error {
	return s.Errorf(source.Agent, RefusedPrompt, "its policy refuses the prompt; ask for something else "+why, args...)
}

// sent notes whether a request may be billed: the provider has accepted it, or did not say.
type sent struct {
	next http.RoundTripper
	owed bool
}

// RoundTrip makes it an http.RoundTripper.
func (s *sent) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(req)
	_, decided := errors.AsType[*source.Error](err) // before it was sent
	failed, known := errors.AsType[*net.OpError](err)
	unsent := decided || known && failed.Op == "dial"
	s.owed = s.owed || err != nil && !unsent || err == nil && resp.StatusCode < 300
	return resp, err
}
