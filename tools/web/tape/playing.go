package tape

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"

	"trajgen/tools/web/source"
)

// Playing answers what one attempt at an episode asks.
//
// A call that is in the recording of its episode gets what it got in the last attempt, in the order of its requests. For a request
// that it did not make there, it is what the episode's other calls got, and else what all episodes got, in recorded order. Behind the end the last answer is repeated,
// unless the request was a POST that was answered in different ways. So what a call gets depends on its own requests alone, and
// not on what else goes on.
type Playing struct {
	tape *Tape
	own  []int32 // what the episode's last attempt got

	mu    sync.Mutex // guards what follows
	used  map[use]int
	loose map[string]int // requests that needed Loose, by call
	stats Stats
}

// use is a request of a call.
type use struct {
	call string
	key  key
}

// Play begins to answer an attempt at an episode.
func (t *Tape) Play(episode string) *Playing {
	p := &Playing{tape: t, used: map[use]int{}, loose: map[string]int{}, stats: Stats{Misses: map[string]int{}}}
	if a := t.plays[episode]; a != nil {
		p.own = a.at
	}
	return p
}

// Stats says how the attempt went until now.
func (p *Playing) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats.clone()
}

// Loose is how many requests of a call needed Loose.
func (p *Playing) Loose(call string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loose[call]
}

func (s Stats) clone() Stats {
	s.Misses = maps.Clone(s.Misses)
	return s
}

// mostHosts bounds the list of hosts, which agents choose. The rest is counted under "".
const mostHosts = 1000

func (s *Stats) count(host string, hit, loose bool) {
	switch {
	case !hit:
		if _, known := s.Misses[host]; !known && len(s.Misses) >= mostHosts {
			host = ""
		}
		s.Misses[host]++
	case loose:
		s.Loose++
		fallthrough
	default:
		s.Hits++
	}
}

// Transport answers a call's requests to a provider, which is named as it was when they were recorded. It never opens a connection: a
// request that the recording lacks gets a *source.Error of the class replay_miss, and a failed one the same error again.
func (p *Playing) Transport(call, provider string) http.RoundTripper {
	return &playing{p, call, provider}
}

type playing struct {
	play           *Playing
	call, provider string
}

func (t *playing) RoundTrip(req *http.Request) (*http.Response, error) {
	a, _, _, err := t.play.tape.secrets.read(req, t.provider)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	i, found := t.play.next(a, t.call, req.URL.Hostname())
	if !found {
		return nil, source.Errorf(source.Outage, source.ReplayMiss, "the recording lacks %s %s", a.Method, a.URL)
	}
	x, body, err := t.play.tape.read(i)
	if err != nil {
		return nil, err
	}
	if x.Status == 0 && x.Failure == nil {
		return nil, unusable(fmt.Errorf("the recording has no answer for %s %s", a.Method, a.URL))
	}
	if x.Status == 0 {
		return nil, x.Failure.error()
	}
	return x.answerTo(req, body), nil
}

// answerTo is the answer as the caller found it.
func (x *exchange) answerTo(req *http.Request, body []byte) *http.Response {
	if x.Header == nil {
		x.Header = http.Header{}
	}
	length := x.Length
	if length > 0 && len(body) > 0 && !x.Cut { // a secret may have been taken out
		length = int64(len(body))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status)), StatusCode: x.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: x.Header, Body: x.reader(body), ContentLength: length, Request: req,
	}
}

// reader is the body as the caller found it: whole, shorter than it was, or broken.
func (x *exchange) reader(body []byte) io.ReadCloser {
	var r io.Reader = bytes.NewReader(body)
	switch {
	case x.Failure != nil:
		r = io.MultiReader(r, ending{x.Failure.error()})
	case x.Cut:
		r = io.MultiReader(r, ending{io.ErrUnexpectedEOF})
	}
	return io.NopCloser(r)
}

// ending is a reader that ends with an error.
type ending struct{ err error }

func (e ending) Read([]byte) (int, error) { return 0, e.err }

// next chooses the exchange that answers a request, and counts.
func (p *Playing) next(a asked, call, host string) (i int32, found bool) {
	t := p.tape
	k := a.key()
	all, loose := t.byKey[k], false
	if len(all) == 0 && t.loose {
		k = a.loosely().key()
		all, loose = t.byLoose[k], true
	}
	var list, others []int32
	for _, own := range p.own {
		switch e := t.exchanges[own]; {
		case e.key != k && !(loose && e.loose == k):
		case e.call == call:
			list = append(list, own)
		default:
			others = append(others, own)
		}
	}
	if len(list) == 0 {
		list = others
	}
	if len(list) == 0 {
		list = all
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.used[use{call, k}]
	switch {
	case n < len(list):
		i, found = list[n], true
		p.used[use{call, k}]++
	case len(list) > 0 && (a.Method == http.MethodGet || a.Method == http.MethodHead || t.equal(all)):
		i, found = list[len(list)-1], true
	}
	p.stats.count(host, found, loose)
	if found && loose {
		p.loose[call]++
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.count(host, found, loose)
	return i, found
}

// equal says that all answers are.
func (t *Tape) equal(all []int32) bool {
	for _, i := range all {
		if t.exchanges[i].answer != t.exchanges[all[0]].answer {
			return false
		}
	}
	return true
}
