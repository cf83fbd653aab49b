package tools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"trajgen/registry"
	"trajgen/tools/internal/chars"
	"trajgen/tools/sessions"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "session_search", Toolset: searchToolset, NoSandbox: true,
		Access: func(json.RawMessage) registry.Access { return registry.Access{} },
		Description: "Looks through earlier sessions: what was asked, done and answered. Without arguments it lists the latest. " +
			"With query it finds sessions by their messages (words must all occur; \"a phrase\", OR, NOT and begin* work). With " +
			"session_id it shows that session, and with around_message_id as well the messages around one that a search found.",
	}, sessionSearch))
}

type sessionSearchArgs struct {
	Query      string  `json:"query,omitempty" alias:"q" doc:"What to look for; with session_id in that session alone." maxlen:"1000"`
	Limit      int     `json:"limit,omitempty" alias:"max_results" doc:"Most sessions to return." default:"3" min:"1" max:"10"`
	Sort       string  `json:"sort,omitempty" doc:"Order of sessions; without it a search gives the best matches first, and a list the newest." enum:"newest,oldest"`
	SessionID  string  `json:"session_id,omitempty" doc:"A session that was listed or found."`
	Around     *int    `json:"around_message_id,omitempty" doc:"With session_id: show the messages around this one." min:"0"`
	Window     int     `json:"window,omitempty" doc:"With around_message_id: messages before it, and as many after it." default:"5" min:"1" max:"20"`
	RoleFilter *string `json:"role_filter,omitempty" alias:"roles" doc:"Roles of messages, with commas: user, assistant, tool. A search looks at user and assistant unless told otherwise." example:"user,assistant,tool"`
}

// What reading a whole session returns.
const (
	readHead = 20
	readTail = 10
)

type browseResult struct {
	Success bool               `json:"success"`
	Mode    string             `json:"mode"`
	Results []sessions.Session `json:"results"`
	Count   int                `json:"count"`
	Total   int                `json:"total"`
	Message string             `json:"message,omitempty"`
}

type discoverResult struct {
	Success bool           `json:"success"`
	Mode    string         `json:"mode"`
	Query   string         `json:"query"`
	Matched string         `json:"matched"` // all of the words, or any
	Results []sessions.Hit `json:"results"`
	Count   int            `json:"count"`
	Message string         `json:"message,omitempty"`
}

type readResult struct {
	Success bool   `json:"success"`
	Mode    string `json:"mode"`
	sessions.Session
	Omitted int                `json:"omitted,omitempty"` // messages between the first and the last ones
	List    []sessions.Message `json:"messages"`
}

type scrollResult struct {
	Success bool   `json:"success"`
	Mode    string `json:"mode"`
	ID      string `json:"session_id"`
	Title   string `json:"title"`
	Before  int    `json:"messages_before"`
	After   int    `json:"messages_after"`

	List []sessions.Message `json:"messages"`
}

func sessionSearch(ctx context.Context, env *registry.Env, args sessionSearchArgs) (any, error) {
	roles, err := roleFilter(args.RoleFilter)
	if err != nil {
		return nil, err
	}
	query, id := strings.TrimSpace(args.Query), strings.TrimSpace(args.SessionID)
	if args.Around != nil && id == "" {
		return nil, registry.Failf("no_session_id", "around_message_id needs the session_id that it belongs to")
	}
	view, ok := registry.Service[*sessions.View](env.Session)
	if !ok { // a call outside of a run: no episode has ended
		return noSessions(query, id)
	}
	var result any
	switch {
	case args.Around != nil:
		result, err = scroll(ctx, view, id, *args.Around, args.Window, roles)
	case query != "":
		result, err = discover(ctx, view, sessions.Search{Query: query, Session: id, Roles: roles, Order: args.Sort, Limit: args.Limit})
	case id != "":
		result, err = read(ctx, view, id, roles)
	default:
		result, err = browse(ctx, view, args.Limit, args.Sort == "oldest")
	}
	switch {
	case errors.Is(err, sessions.ErrUnknown):
		return nil, unknownSession(id)
	case errors.Is(err, sessions.ErrNoMessage):
		return nil, registry.Failf("not_found", "session %s has no message %d; read it without around_message_id to see the ids", id, *args.Around)
	}
	return result, err
}

func unknownSession(id string) error {
	return registry.Failf("not_found", "there is no session %q; call session_search without arguments for a list", cutID(id))
}

func cutID(id string) string { return chars.First(id, 60, "") }

func noSessions(query, id string) (any, error) {
	switch {
	case id != "":
		return nil, unknownSession(id)
	case query != "":
		return discoverResult{Success: true, Mode: "discover", Query: query, Matched: "all", Results: []sessions.Hit{}, Message: nothing}, nil
	}
	return browseResult{Success: true, Mode: "browse", Results: []sessions.Session{}, Message: nothing}, nil
}

const nothing = "There are no earlier sessions yet."

func browse(ctx context.Context, view *sessions.View, limit int, oldest bool) (any, error) {
	list, total, err := view.Browse(ctx, limit, oldest)
	result := browseResult{Success: true, Mode: "browse", Results: list, Count: len(list), Total: total}
	if total == 0 {
		result.Message = nothing
	}
	return result, err
}

func discover(ctx context.Context, view *sessions.View, search sessions.Search) (any, error) {
	hits, loose, err := view.Discover(ctx, search)
	result := discoverResult{Success: true, Mode: "discover", Query: search.Query, Matched: "all", Results: hits, Count: len(hits)}
	if loose {
		result.Matched = "any"
		result.Message = "No message has all the words; these have some of them."
	}
	if len(hits) == 0 {
		result.Message = "Nothing matches; try fewer or other words."
	}
	return result, err
}

func read(ctx context.Context, view *sessions.View, id string, roles []string) (any, error) {
	session, list, omitted, err := view.Read(ctx, id, roles, readHead, readTail)
	return readResult{Success: true, Mode: "read", Session: session, Omitted: omitted, List: list}, err
}

func scroll(ctx context.Context, view *sessions.View, id string, around, window int, roles []string) (any, error) {
	session, list, before, after, err := view.Scroll(ctx, id, around, window, roles)
	return scrollResult{Success: true, Mode: "scroll", ID: session.ID, Title: session.Title, Before: before, After: after, List: list}, err
}

// roleFilter parses a list of roles, separated by commas.
func roleFilter(filter *string) ([]string, error) {
	if filter == nil {
		return nil, nil
	}
	var roles []string
	for role := range strings.SplitSeq(*filter, ",") {
		role = strings.ToLower(strings.TrimSpace(role))
		if role == "" || slices.Contains(roles, role) {
			continue
		}
		if role != "user" && role != "assistant" && role != "tool" {
			return nil, registry.Failf("bad_role", "role_filter names %q (have user, assistant, tool)", cutID(role))
		}
		roles = append(roles, role)
	}
	return roles, nil
}
