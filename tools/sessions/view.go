package sessions

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/tools/internal/chars"
)

// View is the part of a store that one episode may see.
type View struct {
	Store *Store
	Task  *episode.Task // its other samples are hidden, and those of tasks with the same prompt
	// SameTask shows them all the same: one sample then sees the answers of others.
	SameTask bool
}

// ErrUnknown is returned for a session or a message that does not exist, or that the view hides.
var ErrUnknown = errors.New("no such session")

// Session is one session in a list.
type Session struct {
	ID       string `json:"session_id"`
	Title    string `json:"title"`
	Messages int    `json:"message_count"`
	Opening  string `json:"opening"` // the first question
	Closing  string `json:"closing"` // the last answer
}

// Hit is a message that a search found, and its session.
type Hit struct {
	Session
	Message int    `json:"match_message_id"`
	Role    string `json:"matched_role"`
	Tool    string `json:"tool,omitempty"`
	Snippet string `json:"snippet"` // with **…** around what matched
}

// Message is a message of a session. Its id is its position in the episode.
type Message struct {
	ID      int    `json:"id"`
	Role    string `json:"role"`
	Tool    string `json:"tool,omitempty"` // the tool whose result it is
	Content string `json:"content"`
	Cut     bool   `json:"cut,omitempty"` // the content is cut
	Anchor  bool   `json:"anchor,omitempty"`
}

// hidden returns the condition on sessions that hides other samples of the same task.
func (v *View) hidden() (condition string, args []any) {
	if v.SameTask {
		return "1", nil
	}
	return "s.task <> ? AND s.prompt <> ?", []any{baseTask(v.Task.ID), promptSum(v.Task.Prompt)}
}

const sessionColumns = `s.id, s.title, s.messages, s.opening, s.closing`

func (s *Session) scan() []any { return []any{&s.ID, &s.Title, &s.Messages, &s.Opening, &s.Closing} }

// Browse lists sessions, the latest first unless oldest is set, and counts all visible ones.
func (v *View) Browse(ctx context.Context, limit int, oldest bool) (found []Session, total int, err error) {
	x, err := v.Store.ready(ctx)
	if err != nil {
		return nil, 0, err
	}
	hidden, args := v.hidden()
	order := "DESC"
	if oldest {
		order = "ASC"
	}
	found = []Session{}
	err = rows(ctx, x.reader, `SELECT `+sessionColumns+` FROM sessions s WHERE `+hidden+` ORDER BY s.n `+order+` LIMIT ?`, append(args, limit), func(r *sql.Rows) error {
		var s Session
		err := r.Scan(s.scan()...)
		found = append(found, s)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	err = x.reader.QueryRowContext(ctx, `SELECT count(*) FROM sessions s WHERE `+hidden, args...).Scan(&total)
	return found, total, err
}

// Search is a query for Discover.
type Search struct {
	Query   string
	Session string   // only in this session
	Roles   []string // of the messages; none means user and assistant
	Order   string   // newest, oldest, or the best match first
	Limit   int
}

// Discover finds the best message of each matching session. If no message has all the words of a plain query, it finds messages
// with any of them, and loose is set.
func (v *View) Discover(ctx context.Context, search Search) (hits []Hit, loose bool, err error) {
	x, err := v.Store.ready(ctx)
	if err != nil {
		return nil, false, err
	}
	if search.Session != "" {
		if _, _, err := v.session(ctx, x, search.Session); err != nil {
			return nil, false, err
		}
	}
	strict, either, simple := expression(search.Query)
	if strict == "" {
		return []Hit{}, false, nil
	}
	hits, err = v.match(ctx, x, strict, search)
	if err == nil && len(hits) == 0 && simple {
		loose = true
		hits, err = v.match(ctx, x, either, search)
	}
	return hits, loose && len(hits) > 0, err
}

// matchSteps are how many matching messages are examined until enough sessions are found: usually the first step is enough, and
// only matches beyond the last are left out.
var matchSteps = []int{500, 20_000, 500_000}

func (v *View) match(ctx context.Context, x *index, expression string, search Search) (hits []Hit, err error) {
	var keys []int64
	for _, most := range matchSteps {
		var seen int
		if hits, keys, seen, err = v.step(ctx, x, expression, search, most); err != nil {
			return nil, err
		}
		if len(hits) == search.Limit || seen < most {
			break
		}
	}
	// Snippets are made only for the hits that are shown.
	for i := range hits {
		err = x.reader.QueryRowContext(ctx, `SELECT snippet(words, 0, '**', '**', '…', 32) FROM words WHERE words MATCH ? AND rowid = ?`, expression, keys[i]).Scan(&hits[i].Snippet)
		if err != nil {
			return nil, err
		}
		hits[i].Snippet = chars.First(hits[i].Snippet, maxShown, "…")
	}
	return hits, nil
}

// step examines up to most matching messages and returns their sessions. It ranks messages before it joins sessions: ranking a
// message is much cheaper than the join.
func (v *View) step(ctx context.Context, x *index, expression string, search Search, most int) (hits []Hit, keys []int64, seen int, err error) {
	orders := map[string][2]string{"": {"rank", "f.score"}, "newest": {"rowid DESC", "s.n DESC, f.score"}, "oldest": {"rowid", "s.n, f.score"}}
	order, known := orders[search.Order]
	if !known {
		return nil, nil, 0, fmt.Errorf("unknown order %q", search.Order)
	}
	roles := search.Roles
	if len(roles) == 0 {
		roles = []string{"user", "assistant"}
	}
	hidden, others := v.hidden()
	// Hidden sessions count, too, for whether there may be more.
	query := `SELECT ` + sessionColumns + `, m.rowid, m.at, m.role, m.tool, ` + hidden + ` FROM ` +
		`(SELECT rowid AS message, rank AS score FROM words WHERE words MATCH ? ORDER BY ` + order[0] + ` LIMIT ?) f ` +
		`JOIN messages m ON m.rowid = f.message JOIN sessions s ON s.n = m.session ORDER BY ` + order[1] + `, m.rowid`
	hits = []Hit{}
	err = rows(ctx, x.reader, query, append(others, expression, most), func(r *sql.Rows) error {
		var hit Hit
		var row int64
		var shown bool
		if err := r.Scan(append(hit.scan(), &row, &hit.Message, &hit.Role, &hit.Tool, &shown)...); err != nil {
			return err
		}
		seen++
		twice := search.Session == "" && slices.ContainsFunc(hits, func(h Hit) bool { return h.ID == hit.ID })
		if shown && !twice && len(hits) < search.Limit && slices.Contains(roles, hit.Role) && (search.Session == "" || search.Session == hit.ID) {
			hits, keys = append(hits, hit), append(keys, row)
		}
		return nil
	})
	return hits, keys, seen, err
}

// session returns a visible session and its number.
func (v *View) session(ctx context.Context, x *index, id string) (s Session, n int64, err error) {
	hidden, args := v.hidden()
	err = x.reader.QueryRowContext(ctx, `SELECT `+sessionColumns+`, s.n FROM sessions s WHERE s.id = ? AND `+hidden, append([]any{id}, args...)...).Scan(append(s.scan(), &n)...)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrUnknown
	}
	return s, n, err
}

// Read returns a session's first and last messages: all of them when there are no more than head and tail together.
func (v *View) Read(ctx context.Context, id string, roles []string, head, tail int) (s Session, messages []Message, omitted int, err error) {
	all, s, err := v.messages(ctx, id, roles, -1)
	if err != nil {
		return s, nil, 0, err
	}
	if omitted = len(all) - head - tail; omitted > 0 {
		all = slices.Delete(all, head, len(all)-tail)
	}
	return s, all, max(omitted, 0), nil
}

// Scroll returns the messages around one, and how many are before and after those. The message itself is included whatever its
// role.
func (v *View) Scroll(ctx context.Context, id string, around, window int, roles []string) (s Session, messages []Message, before, after int, err error) {
	all, s, err := v.messages(ctx, id, roles, around)
	if err != nil {
		return s, nil, 0, 0, err
	}
	at, ok := slices.BinarySearchFunc(all, around, func(m Message, id int) int { return cmp.Compare(m.ID, id) })
	if !ok {
		return s, nil, 0, 0, ErrNoMessage
	}
	all[at].Anchor = true
	from, to := max(0, at-window), min(len(all), at+window+1)
	return s, all[from:to], from, len(all) - to, nil
}

// ErrNoMessage is returned for a message that a session does not have.
var ErrNoMessage = errors.New("no such message")

// messages returns the messages with the roles, and the one with the id anchor.
func (v *View) messages(ctx context.Context, id string, roles []string, anchor int) ([]Message, Session, error) {
	x, err := v.Store.ready(ctx)
	if err != nil {
		return nil, Session{}, err
	}
	s, n, err := v.session(ctx, x, id)
	if err != nil {
		return nil, s, err
	}
	list := []Message{}
	err = rows(ctx, x.reader, `SELECT at, role, tool, substr(content, 1, ?), length(content) > ? FROM messages WHERE session = ? ORDER BY at`, []any{maxShown, maxShown, n}, func(r *sql.Rows) error {
		var m Message
		err := r.Scan(&m.ID, &m.Role, &m.Tool, &m.Content, &m.Cut)
		if m.ID == anchor || len(roles) == 0 || slices.Contains(roles, m.Role) {
			list = append(list, m)
		}
		return err
	})
	return list, s, err
}
