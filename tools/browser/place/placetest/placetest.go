// Package placetest has servers that speak the protocols of package place as their makers document them. Behind each session is a
// Chromium of its own, so that pages are really driven.
package placetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Key is what servers want as their key.
const Key = "k3y-of-the-t3st"

// Request is one that a server got.
type Request struct {
	Method, Path, Query, Body string
	Header                    http.Header
}

// Server is a fake of a provider.
type Server struct {
	URL string // base URL; of cdp, that of the endpoint

	t        testing.TB
	protocol protocol
	mu       sync.Mutex // guards the fields below
	trouble  Trouble
	sessions map[string]*session
	got      []Request
	made     int
	ended    int
}

// Trouble answers a request in the place of the server, which serve is, if it returns true.
type Trouble func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool

// session is one that was made and has not ended.
type session struct {
	browser *Chromium
	body    map[string]any // of the request that made it
	tab     *tab
}

// protocol is what a provider documents.
type protocol struct {
	create string // method and path
	end    string // of which %s is the id
	key    [2]string
	id     func(body map[string]any, n int) string
	answer func(s *Server, id string) any
	// more serves what else there is.
	more func(s *Server, w http.ResponseWriter, r *http.Request, body map[string]any) bool
}

func numbered(_ map[string]any, n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func field(name string) func(map[string]any, int) string {
	return func(body map[string]any, _ int) string { id, _ := body[name].(string); return id }
}

type object = map[string]any

var protocols = map[string]protocol{
	"browserbase": {
		create: "POST /v1/sessions", end: "POST /v1/sessions/%s", key: [2]string{"X-BB-API-Key", Key}, id: numbered,
		answer: func(s *Server, id string) any {
			return object{"id": id, "status": "RUNNING", "projectId": "p", "keepAlive": false, "connectUrl": s.socket(id, "signingKey=abc"),
				"seleniumRemoteUrl": "http://x", "signingKey": "abc", "region": "us-west-2"}
		},
		more: listBrowserbase,
	},
	"browser-use": {
		create: "POST /api/v3/browsers", end: "PATCH /api/v3/browsers/%s", key: [2]string{"X-Browser-Use-API-Key", Key}, id: numbered,
		answer: func(s *Server, id string) any {
			return object{"id": id, "status": "active", "timeoutAt": "2026-01-01T00:00:00Z", "startedAt": "2026-01-01T00:00:00Z",
				"liveUrl": "https://live.test/" + id, "cdpUrl": s.URL + "/cdp/" + id, "finishedAt": nil, "proxyUsedMb": "0", "proxyCost": "0"}
		},
	},
	"steel": {
		create: "POST /v1/sessions", end: "POST /v1/sessions/%s/release", key: [2]string{"Steel-Api-Key", Key}, id: field("sessionId"),
		answer: func(s *Server, id string) any {
			return object{"id": id, "status": "live", "createdAt": "2026-01-01T00:00:00Z", "timeout": 900000, "dimensions": nil,
				"websocketUrl": s.socket(id, ""), "sessionViewerUrl": "https://app.test/sessions/" + id, "debugUrl": "https://x", "creditsUsed": 0}
		},
	},
	"firecrawl": {
		create: "POST /v2/browser", end: "DELETE /v2/browser/%s", key: [2]string{"Authorization", "Bearer " + Key}, id: numbered,
		answer: func(s *Server, id string) any {
			return object{"success": true, "id": id, "cdpUrl": s.socket(id, "token=t"), "liveViewUrl": "https://live.test/" + id,
				"expiresAt": "2026-01-01T00:00:00Z"}
		},
	},
	"camofox": {
		create: "POST /tabs", end: "DELETE /sessions/%s", key: [2]string{"Authorization", "Bearer " + Key}, id: field("userId"),
		answer: func(s *Server, id string) any { return object{"tabId": s.newTab(id), "url": "about:blank"} },
		more:   serveTab,
	},
}

// Start starts a fake of a place.
func Start(t testing.TB, name string) *Server {
	t.Helper()
	s := &Server{t: t, sessions: map[string]*session{}}
	if name == "cdp" { // the endpoint is the browser's own
		s.URL = StartChromium(t).URL
		return s
	}
	var known bool
	if s.protocol, known = protocols[name]; !known {
		t.Fatalf("no fake of %s", name)
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL = server.URL
	return s
}

// socket is the address of a session's web socket.
func (s *Server) socket(id, query string) string {
	return "ws" + strings.TrimPrefix(s.URL, "http") + "/connect?" + query + "&sessionId=" + id
}

// Make begins trouble.
func (s *Server) Make(trouble Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = trouble
}

// Made counts the sessions that were made.
func (s *Server) Made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

// Ended counts the sessions that were released.
func (s *Server) Ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Running are the ids of sessions that have not ended.
func (s *Server) Running() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.sessions))
}

// Got are the requests that came, but those over a session's own connection.
func (s *Server) Got() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.connect(w, r) {
		return
	}
	text, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	s.mu.Lock()
	s.got = append(s.got, Request{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(text), r.Header.Clone()})
	trouble := s.trouble
	s.mu.Unlock()
	if trouble != nil && trouble(w, r, s.manage) {
		return
	}
	s.manage(w, r)
}

// manage serves what makes, lists and ends sessions.
func (s *Server) manage(w http.ResponseWriter, r *http.Request) {
	p := s.protocol
	if r.Header.Get(p.key[0]) != p.key[1] {
		say(w, http.StatusUnauthorized, object{"error": "Unauthorized"})
		return
	}
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	asked := r.Method + " " + r.URL.Path
	if asked == p.create {
		say(w, http.StatusOK, s.make(body))
		return
	}
	before, after, _ := strings.Cut(p.end, "%s")
	id, isEnd := strings.CutPrefix(asked, before)
	id, rest := strings.CutSuffix(id, after)
	switch {
	case isEnd && rest && !strings.Contains(id, "/"):
		if !s.End(id) && p.create != "POST /tabs" { // Camofox ends what it does not know without a word
			say(w, http.StatusNotFound, object{"detail": "Session not found"})
			return
		}
		say(w, http.StatusOK, object{"success": true, "id": id, "status": "COMPLETED"})
	case p.more != nil && p.more(s, w, r, body):
	default:
		say(w, http.StatusNotFound, object{"message": "no such request"})
	}
}

func say(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// make makes a session, which is billed from now on.
func (s *Server) make(body map[string]any) any {
	s.mu.Lock()
	id := s.protocol.id(body, s.made+1)
	if s.sessions[id] == nil {
		s.made++
		s.sessions[id] = &session{body: body}
	}
	s.mu.Unlock()
	return s.protocol.answer(s, id)
}

// browser is the Chromium of a session; nil for a session that does not exist.
func (s *Server) browser(id string) *Chromium {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one == nil {
		return nil
	}
	if one.browser == nil {
		one.browser = StartChromium(s.t)
	}
	return one.browser
}

// End ends a session, and says whether it was there.
func (s *Server) End(id string) bool {
	s.mu.Lock()
	one := s.sessions[id]
	delete(s.sessions, id)
	if one != nil {
		s.ended++
	}
	s.mu.Unlock()
	if one != nil && one.browser != nil {
		one.browser.Kill()
	}
	return one != nil
}

// connect serves the connections of sessions: to a web socket, and what a server of Browser Use tells about it.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) bool {
	id := r.URL.Query().Get("sessionId")
	switch {
	case r.URL.Path == "/connect":
	case strings.HasPrefix(r.URL.Path, "/cdp/"):
		id, _ = strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/cdp/"), "/json/version")
		say(w, http.StatusOK, object{"Browser": "Chrome", "webSocketDebuggerUrl": s.socket(id, "")})
		return true
	default:
		return false
	}
	browser := s.browser(id)
	if browser == nil || s.protocol.create == "POST /v1/sessions" && s.protocol.key[0] == "Steel-Api-Key" && r.URL.Query().Get("apiKey") != Key {
		http.Error(w, "no such session, or no key", http.StatusForbidden)
		return true
	}
	target, _ := url.Parse("http" + strings.TrimPrefix(browser.Socket, "ws"))
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL, p.Out.Host = target, target.Host }}
	proxy.ServeHTTP(w, r)
	return true
}

// listBrowserbase lists sessions by their metadata.
func listBrowserbase(s *Server, w http.ResponseWriter, r *http.Request, _ map[string]any) bool {
	if r.Method+" "+r.URL.Path != "GET /v1/sessions" {
		return false
	}
	found := []object{{"id": "an-old-one", "status": "COMPLETED"}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.sessions {
		metadata, _ := one.body["userMetadata"].(map[string]any)
		for key, value := range metadata {
			if fmt.Sprintf("user_metadata['%s']:'%v'", key, value) == r.URL.Query().Get("q") {
				found = append(found, object{"id": id, "status": "RUNNING", "userMetadata": metadata})
			}
		}
	}
	say(w, http.StatusOK, found)
	return true
}
