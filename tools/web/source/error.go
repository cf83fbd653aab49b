package source

import "fmt"

// Blame says who can do something about an Error.
type Blame int

const (
	// Agent can mend it: an address that is refused, a page that does not exist, a file of a kind that has no text.
	Agent Blame = iota
	// Outage passes: a provider or a site that does not answer, or answers that it has too much to do.
	Outage
	// Operator must mend it before the run makes sense: a key that is refused, a quota that is spent, a missing program.
	Operator
)

// The classes of errors, as they stand in the trace. Further ones are an HTTP status, such as http_404.
const (
	BlockedURL  = "blocked_url"    // the guard refuses the address
	SecretInURL = "secret_in_url"  // the address has something in it that looks like a secret
	Policy      = "blocked_policy" // the run's list of sites, or the site's robots.txt, refuses it
	NoHost      = "no_host"        // there is no such name
	TooLarge    = "too_large"      // more bytes than the limit
	NoText      = "no_text"        // a kind of file that has no text for a model
	Redirects   = "redirects"      // too many
	Malformed   = "malformed"      // an answer that cannot be read
	Unavailable = "unavailable"    // no answer, or a server's 429 or 5xx
	Refused     = "refused"        // a provider refuses the key or has no quota left
	ReplayMiss  = "replay_miss"    // the recording lacks the request
	Recording   = "recording"      // the recording cannot be written, or is damaged
	NotInCorpus = "not_in_corpus"  // the corpus has no such document
	NoSearch    = "no_search"      // the run has no search provider
	Unsupported = "unsupported"    // the source cannot do what the query asks for
)

// Error is why a source did not answer.
type Error struct {
	Class   string
	Blame   Blame
	Message string // for the model: what happened, and what it can do
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(blame Blame, class, format string, args ...any) *Error {
	return &Error{Class: class, Blame: blame, Message: fmt.Sprintf(format, args...)}
}
