package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/mcp/osv"
)

// Settings is the section of a run file that declares MCP servers.
type Settings struct {
	Servers map[string]Server `yaml:"servers,omitempty" flag:"mcp-servers" experiment:"given"`
	// Lock is the file of `trajgen mcp lock`: what each server said of itself. A server that differs is refused.
	Lock string `yaml:"lock,omitempty" flag:"mcp-lock" experiment:"no"`
	// Advisories are lists of the OSV format, each a file, a folder, a zip file or a URL. A server with a package that one of them
	// calls malware is refused, before it is started.
	Advisories []string `yaml:"advisories,omitempty" flag:"mcp-advisories" experiment:"no"`
	// TaskHosts are those (HOST or HOST:PORT) that servers may have which tasks declare by a URL.
	TaskHosts []string `yaml:"task_hosts,omitempty" flag:"mcp-task-hosts" experiment:"given"`
	// RefuseSuspicious refuses servers whose descriptions read like an attack on the model, instead of a warning.
	RefuseSuspicious bool `yaml:"refuse_suspicious,omitempty" flag:"mcp-refuse-suspicious" experiment:"no"`
}

// Server declares a server: a command, which runs in a sandbox, or a URL.
type Server struct {
	Command []string `yaml:"command,omitempty" json:"command,omitempty"`
	// Files are files and folders of the runner that are copied into the server's directory, where the command starts.
	Files []string          `yaml:"files,omitempty" json:"files,omitempty"`
	Env   map[string]string `yaml:"env,omitempty" json:"env,omitempty"`
	// EnvAllow names variables of the runner's environment that the command gets. They hold no secrets, as an agent can read them.
	EnvAllow []string `yaml:"env_allow,omitempty" json:"env_allow,omitempty"`
	// Packages are those that the command is made of where its files do not say so, such as npm:name@1.2.3 or pypi:name@1.2.3.
	Packages []string `yaml:"packages,omitempty" json:"packages,omitempty"`

	URL       string `yaml:"url,omitempty" json:"url,omitempty"`
	Transport string `yaml:"transport,omitempty" json:"transport,omitempty"` // of a URL: http (the default) or sse
	// HeaderEnv has the variables of the runner's environment that hold the values of headers. They are secrets.
	HeaderEnv map[string]string `yaml:"header_env,omitempty" json:"header_env,omitempty"`
	OAuth     *OAuth            `yaml:"oauth,omitempty" json:"oauth,omitempty"`

	Tools     Choice `yaml:"tools,omitempty" json:"tools,omitzero"`
	Resources *bool  `yaml:"resources,omitempty" json:"resources,omitempty"` // tools that list and read them; the default is true
	Prompts   *bool  `yaml:"prompts,omitempty" json:"prompts,omitempty"`     // tools that list and get them; the default is true

	Timeout        time.Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`                 // of a call; 0 is 2 minutes
	ConnectTimeout time.Duration `yaml:"connect_timeout,omitempty" json:"connect_timeout,omitempty"` // 0 is a minute
	MaxResult      int           `yaml:"max_result,omitempty" json:"max_result,omitempty"`           // bytes that a model is shown

	// Shared has one connection for the whole run, and one process in a sandbox of its own. What the server keeps between episodes
	// is then the user's to answer for; Stateless says that it keeps nothing.
	Shared    bool `yaml:"shared,omitempty" json:"shared,omitempty"`
	Stateless bool `yaml:"stateless,omitempty" json:"stateless,omitempty"`
	// Parallel lets calls of one turn run side by side.
	Parallel bool `yaml:"parallel,omitempty" json:"parallel,omitempty"`

	Elicitation *Elicitation `yaml:"elicitation,omitempty" json:"elicitation,omitempty"`
	Sampling    *Sampling    `yaml:"sampling,omitempty" json:"sampling,omitempty"`

	Enabled *bool `yaml:"enabled,omitempty" json:"-"` // the default is true
}

// Choice chooses tools by patterns of their names, such as read_*.
type Choice struct {
	Include []string `yaml:"include,omitempty" json:"include,omitempty"`
	Exclude []string `yaml:"exclude,omitempty" json:"exclude,omitempty"`
}

// OAuth gets access tokens with client credentials, which are in variables of the runner's environment.
type OAuth struct {
	ClientIDEnv     string `yaml:"client_id_env" json:"client_id_env"`
	ClientSecretEnv string `yaml:"client_secret_env" json:"client_secret_env"`
}

// Who answers what a server asks the user.
const (
	ByUser  = "user"    // the task's user, as clarify asks
	Decline = "decline" // whoever asks is told no
)

// Elicitation lets a server ask the user, within a call.
type Elicitation struct {
	By string `yaml:"by,omitempty" json:"by,omitempty"` // user or decline, for what no answer matches; decline is the default
	// Answers are tried in order: the first whose pattern is found in the question answers.
	Answers []Answer `yaml:"answers,omitempty" json:"answers,omitempty"`
}

// Answer is an answer that was written before.
type Answer struct {
	Match   string         `yaml:"match" json:"match"` // RE2
	Content map[string]any `yaml:"content" json:"content"`
}

// Sampling lets a server of an old protocol ask a model, within a call.
type Sampling struct {
	Model     string `yaml:"model,omitempty" json:"model,omitempty"` // the default is the run's; what follows is as in user:
	BaseURL   string `yaml:"base_url,omitempty" json:"-"`
	APIKeyEnv string `yaml:"api_key_env,omitempty" json:"-"`
	MaxTokens int    `yaml:"max_tokens,omitempty" json:"max_tokens,omitempty"` // of an answer; 0 is 4096
	MaxCalls  int    `yaml:"max_calls,omitempty" json:"max_calls,omitempty"`   // of an episode; 0 is 10
}

// SampledTokens is how long an answer of a model may be that a server asks, where its declaration says nothing.
const SampledTokens = 4096

const (
	defaultTimeout = 2 * time.Minute
	defaultConnect = time.Minute
	defaultAsked   = 10
)

var (
	namePattern   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)
	secretPattern = regexp.MustCompile(`(?i)(^|_)(api_?key|access_?key|token|secret|password|passwd|credentials?)$`)
)

// Validate returns all errors of the section.
func (s Settings) Validate() error {
	var errs []error
	for _, name := range sortedKeys(s.Servers) {
		if !namePattern.MatchString(name) {
			errs = append(errs, fmt.Errorf("mcp server %q: a name is a small letter and up to 39 small letters, digits, '_' and '-'",
				name))
		}
		for _, err := range s.Servers[name].problems() {
			errs = append(errs, fmt.Errorf("mcp server %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Enabled are the names of the servers that are not switched off, sorted.
func (s Settings) Enabled() []string {
	return slices.DeleteFunc(sortedKeys(s.Servers), func(name string) bool {
		on := s.Servers[name].Enabled
		return on != nil && !*on
	})
}

// Variables are the variables of the environment that hold secrets.
func (s Settings) Variables() []string {
	var names []string
	for _, server := range s.Servers {
		names = slices.AppendSeq(names, maps.Values(server.HeaderEnv))
		if server.OAuth != nil {
			names = append(names, server.OAuth.ClientIDEnv, server.OAuth.ClientSecretEnv)
		}
		if server.Sampling != nil {
			names = append(names, server.Sampling.APIKeyEnv)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

func (s Server) problems() []error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	stdio := len(s.Command) > 0
	bad(stdio == (s.URL != ""), "want a command, which runs in the sandbox, or a url, and not both")
	bad(stdio && s.Command[0] == "", "the command has no program")
	bad(strings.ContainsRune(strings.Join(s.Command, ""), 0), "the command has a zero byte")
	bad(stdio && fetches(s.Command), "%s would fetch a package during the run, which can be another one tomorrow, and the sandbox "+
		"has no network: install the package once, with a lock file that has hashes, and give what was installed under files, or "+
		"in the image; trajgen mcp lock then pins it", s.Command)
	for _, text := range s.Packages {
		_, err := osv.Parse(text)
		bad(err != nil, "packages: %v", err)
	}
	bad(!stdio && len(s.Files)+len(s.Env)+len(s.EnvAllow)+len(s.Packages) > 0, "files, env, env_allow and packages belong to a command")
	bad(stdio && (len(s.HeaderEnv) > 0 || s.OAuth != nil || s.Transport != ""), "header_env, oauth and transport belong to a url")
	bad(s.Transport != "" && s.Transport != "http" && s.Transport != "sse", "transport is %q; http or sse", s.Transport)
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		bad(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil,
			"url must be a whole URL of http or https without a user name, such as https://example.org/mcp")
	}
	for _, name := range sortedKeys(s.Env) {
		bad(!sandbox.IsVariable(name), "env: %q is not a name of a variable", name)
		bad(strings.ContainsRune(s.Env[name], 0), "env: %s has a zero byte", name)
		bad(secretPattern.MatchString(name), "env: %s looks like a secret, which an agent could read in the sandbox, and run.json shows: "+
			"a server that needs one runs elsewhere, and is declared by its url with header_env", name)
	}
	for _, name := range s.EnvAllow {
		bad(!sandbox.IsVariable(name), "env_allow: %q is not a name of a variable", name)
		bad(secretPattern.MatchString(name), "env_allow: %s looks like a secret, which an agent could read in the sandbox", name)
	}
	for _, name := range sortedKeys(s.HeaderEnv) {
		bad(!headerPattern.MatchString(name), "header_env: %q is not a name of a header", name)
		bad(!sandbox.IsVariable(s.HeaderEnv[name]), "header_env: %q is not a name of a variable: the value itself does not belong here",
			s.HeaderEnv[name])
	}
	if s.OAuth != nil {
		bad(!sandbox.IsVariable(s.OAuth.ClientIDEnv) || !sandbox.IsVariable(s.OAuth.ClientSecretEnv),
			"oauth wants client_id_env and client_secret_env: names of variables")
		bad(s.HeaderEnv["Authorization"] != "", "oauth and a header Authorization exclude each other")
	}
	for _, pattern := range slices.Concat(s.Tools.Include, s.Tools.Exclude) {
		_, err := path.Match(pattern, "")
		bad(err != nil || pattern == "", "tools: %q is not a pattern such as read_*", pattern)
	}
	bad(s.Timeout < 0 || s.ConnectTimeout < 0, "timeout and connect_timeout are not below 0")
	bad(s.MaxResult < 0, "max_result is %d; not below 0", s.MaxResult)
	bad(s.Parallel && (s.Elicitation != nil || s.Sampling != nil),
		"parallel calls leave unknown in which of them the server asks: leave out parallel, or elicitation and sampling")
	return append(errs, s.asking()...)
}

// asking is what is wrong with whom the server may ask.
func (s Server) asking() (errs []error) {
	if e := s.Elicitation; e != nil {
		if by := cmp.Or(e.By, Decline); by != ByUser && by != Decline {
			errs = append(errs, fmt.Errorf("elicitation: by is %q; user or decline", e.By))
		}
		for i, answer := range e.Answers {
			if _, err := regexp.Compile(answer.Match); err != nil {
				errs = append(errs, fmt.Errorf("elicitation: answers[%d].match: %w", i, err))
			}
		}
	}
	if a := s.Sampling; a != nil && (a.MaxTokens < 0 || a.MaxCalls < 0) {
		errs = append(errs, errors.New("sampling: max_tokens and max_calls are not below 0"))
	}
	return errs
}

var headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// fetches reports whether a command fetches its package when it is started.
func fetches(command []string) bool {
	switch path.Base(command[0]) {
	case "npx", "uvx", "pipx", "bunx":
		return true
	case "npm", "pnpm", "yarn", "bun", "uv":
		return len(command) > 1 && slices.Contains([]string{"exec", "x", "dlx", "tool", "run"}, command[1])
	}
	return false
}

// offers are the capabilities that the server hears of.
func (s Server) offers() []string {
	var all []string
	if s.Elicitation != nil {
		all = append(all, "elicitation")
	}
	if s.Sampling != nil {
		all = append(all, "sampling")
	}
	return all
}

// inEpisode says that the server runs in the episode's own sandbox, so that an attempt which goes on after its runner has died asks
// it again.
func (s Server) inEpisode() bool { return s.URL == "" && !s.Shared }

func (s Server) timeout() time.Duration        { return cmp.Or(s.Timeout, defaultTimeout) }
func (s Server) connectTimeout() time.Duration { return cmp.Or(s.ConnectTimeout, defaultConnect) }

// connecting bounds the time in which the server has to answer at first.
func (s Server) connecting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.connectTimeout(), fmt.Errorf("it did not answer within %s", s.connectTimeout()))
}

// takes reports whether the choice has a tool.
func (c Choice) takes(name string) bool {
	matches := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
	return (len(c.Include) == 0 || slices.ContainsFunc(c.Include, matches)) && !slices.ContainsFunc(c.Exclude, matches)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
