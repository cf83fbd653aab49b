package mcpserve

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxBody is the most bytes of a request.
const maxBody = 16 << 20

// Handler serves sessions over streamable HTTP, to clients that have the token. A session ends when its client deletes it, or was
// idle for that long.
func (s *Server) Handler(token string, idle time.Duration) http.Handler {
	sessions := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		SessionTimeout: idle, MaxRequestBodyBytes: maxBody, Logger: s.config.Logger,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := []byte(r.Header.Get("Authorization"))
		switch {
		case foreign(r):
			http.Error(w, "requests of other sites' pages are refused", http.StatusForbidden)
		case subtle.ConstantTimeCompare(given, []byte("Bearer "+token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "want the header Authorization: Bearer TOKEN", http.StatusUnauthorized)
		case s.ended.Err() != nil:
			http.Error(w, errClosed.Error(), http.StatusServiceUnavailable)
		case r.Header.Get("Mcp-Session-Id") == "" && s.sessions() >= s.config.Sessions:
			http.Error(w, errFull.Error(), http.StatusServiceUnavailable)
		default:
			sessions.ServeHTTP(w, r)
		}
	})
}

// foreign reports whether a browser made the request for a page of another site.
func foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// sessions is how many sessions there are, also without a desk. What a client asks before it begins one is a session, too, until it
// is answered.
func (s *Server) sessions() (begun int) {
	for session := range s.mcp.Sessions() {
		if session.InitializeParams() != nil {
			begun++
		}
	}
	return begun
}
