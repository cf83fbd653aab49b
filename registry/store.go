package registry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// A result over its limit is written whole into the sandbox, and the model gets its beginning and the path of the file.
const (
	storeDir     = "trajgen-results" // in the sandbox's directory for temporary files
	storeTime    = 30 * time.Second
	maxPreview   = 1500 // bytes
	maxKept      = 2000 // bytes of short members that are shown beside the preview, if the limit is at least four times that
	largeEnough  = 4096 // storing a smaller result saves nothing for the turn's limit
	maxStoreName = 64

	maxNested = 4 * DefaultMaxResult // default for a script's call, which is not stored, and which no model reads
)

// limit is the most bytes of the call's result.
func (s *Session) limit(p *prepared) int {
	if limit := s.cfg.Limits.Tools[p.call.Name]; limit > 0 {
		return max(limit, minResult)
	}
	if p.tool != nil && p.tool.MaxResult > 0 {
		return max(p.tool.MaxResult, minResult)
	}
	if p.call.Parent != "" {
		return maxNested
	}
	return DefaultMaxResult
}

// fit brings a result to its limit.
func (s *Session) fit(ctx context.Context, p *prepared) {
	p.call.ResultBytes = len(p.call.Result)
	if limit := s.limit(p); len(p.call.Result) > limit {
		s.shrink(ctx, p, &p.call, limit)
	}
}

// fitTurn brings the results of one turn to their limit together: the longest are stored first.
func (s *Session) fitTurn(ctx context.Context, calls []*prepared) {
	limit := cmp.Or(s.cfg.Limits.Turn, DefaultTurnResults)
	total := 0
	for _, p := range calls {
		total += len(p.call.Result)
	}
	if total <= limit {
		return
	}
	var long []*prepared
	for _, p := range calls {
		if len(p.call.Result) >= largeEnough && p.call.Stored == "" && p.first == nil {
			long = append(long, p)
		}
	}
	slices.SortStableFunc(long, func(a, b *prepared) int {
		return cmp.Or(rank(a)-rank(b), len(b.call.Result)-len(a.call.Result))
	})
	for _, p := range long {
		if total <= limit || len(calls) == 1 && rank(p) > 0 {
			break
		}
		short := p.call
		s.shrink(ctx, p, &short, largeEnough)
		for _, each := range calls {
			if each == p || each.first == p {
				total += len(short.Result) - len(each.call.Result)
				s.change(each, func(call *episode.ToolCall) {
					call.Result, call.Truncated, call.Stored = short.Result, short.Truncated, short.Stored
				})
			}
		}
	}
}

// rank puts the results that cannot be stored last.
func rank(p *prepared) int {
	if p.tool == nil || p.tool.Reader {
		return 1
	}
	return 0
}

// shrink stores a result, or cuts it.
func (s *Session) shrink(ctx context.Context, p *prepared, call *episode.ToolCall, limit int) {
	if long := s.storable(p, limit); long != nil && s.store(ctx, long) == nil {
		if text, ok := s.show(p, long, limit); ok {
			call.Result, call.Stored, call.Truncated = text, long.path, true
			return
		}
	}
	call.Result, call.Truncated = fitResult(call.Result, limit, p.failure)
}

// longResult is a result as it is stored and shown.
type longResult struct {
	path  string
	data  string
	field string   // whose text data is, "" when data is the whole result
	kept  []string // the other members
}

// storable is nil for a result that the model could not read from the sandbox, and for one that a program gets.
func (s *Session) storable(p *prepared, limit int) *longResult {
	box := s.opened()
	if box == nil || p.tool == nil || p.tool.Reader || p.call.Parent != "" || box.Layout().Tmp == "" || !s.tools.usesSandbox() {
		return nil
	}
	long := &longResult{}
	long.spread(p.call.Result, min(maxKept, limit/4))
	ending := ".txt"
	if long.field == "" {
		ending = ".json"
	}
	name := fmt.Sprintf("%d-%d-%s%s", p.call.Turn, p.call.Index, fileName(p.call.ID), ending)
	long.path = path.Join(box.Layout().Tmp, storeDir, name)
	return long
}

// spread finds the text that makes up a result, so that it is stored with its lines and not as one line of JSON. A result of another
// shape, or whose other members are longer than kept, is stored as indented JSON.
func (l *longResult) spread(result string, kept int) {
	v := parseValue(result)
	longest := -1
	for i := range v.members {
		if m := &v.members[i].value; m.kind == kindString && (longest < 0 || len(m.text) > len(v.members[longest].value.text)) {
			longest = i
		}
	}
	if longest >= 0 {
		size := len(v.members[longest].name)
		var others []string
		for i := range v.members {
			if m := &v.members[i]; i != longest {
				others = append(others, m.name+":"+string(m.value.append(nil)))
				size += len(others[len(others)-1])
			}
		}
		data := unquote(v.members[longest].value.text)
		if size <= kept && !slices.ContainsFunc(v.members, func(m member) bool { return ours[m.key] }) && !strings.ContainsRune(data, 0) {
			l.data, l.field, l.kept = data, v.members[longest].key, others
			return
		}
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(result), "", "  "); err != nil {
		l.data = result
		return
	}
	l.data = indented.String() + "\n"
}

// ours are the members that show adds.
var ours = map[string]bool{"original_bytes": true, "stored": true, "note": true, "preview": true}

// fileName makes an id, which a model may have written, safe as a file name.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, id)
	if name == id && len(id) <= maxStoreName {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return name[:min(len(name), maxStoreName-9)] + "-" + hex.EncodeToString(sum[:4])
}

// store writes the whole result into the sandbox. A link that the agent planted at its path cannot redirect it.
func (s *Session) store(ctx context.Context, long *longResult) error {
	box := s.opened()
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := box.Files().Write(ctx, sandbox.FileWrite{Path: long.path, Data: []byte(long.data), Replace: true})
	if errors.Is(err, sandbox.ErrGone) {
		s.setFault(episode.SandboxError, "gone", err.Error())
	}
	if err != nil {
		s.cfg.Logger.Debug("result not stored", "path", long.path, "error", err)
	}
	return err
}

// show is a stored result's beginning and the path of the rest, as far as they fit the limit. An error stays an error.
func (s *Session) show(p *prepared, long *longResult, limit int) (string, bool) {
	failure := quoteWithin(p.failure, min(maxKept, limit)/4)
	for room := min(maxPreview, limit/2); ; room /= 2 {
		text := s.envelope(p, long, failure, room)
		if len(text) <= limit || room == 0 {
			return text, len(text) <= limit
		}
	}
}

func (s *Session) envelope(p *prepared, long *longResult, failure string, room int) string {
	preview := wholeRunes(long.data[:min(room, len(long.data))])
	if end := strings.LastIndexByte(preview, '\n'); end > len(preview)/2 {
		preview = preview[:end+1]
	}
	what := "it"
	if long.field != "" {
		what = quote(long.field)
	}
	note := fmt.Sprintf("the result was too long: preview is the beginning of %s, which lies whole in the sandbox at stored", what)
	if reader := s.tools.reader(); reader != "" {
		note += fmt.Sprintf("; read on there with %s from line %d of %d", reader, strings.Count(preview, "\n")+1, lines(long.data))
	}
	var b strings.Builder
	b.WriteByte('{')
	if p.failure != "" {
		b.WriteString(`"error":` + failure + ",")
	}
	for _, each := range long.kept {
		if said := p.failure != "" && strings.HasPrefix(each, `"error":`); !said && !strings.HasPrefix(each, `"truncated":`) {
			b.WriteString(each + ",")
		}
	}
	fmt.Fprintf(&b, `"truncated":true,"original_bytes":%d,"stored":%s,"note":%s,"preview":%s}`,
		p.call.ResultBytes, quote(long.path), quote(note), quote(preview))
	return b.String()
}

func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// reader is the tool with which long results are read, or "".
func (t *Toolset) reader() string {
	for _, name := range sortedKeys(t.tools) {
		if t.tools[name].Reader {
			return name
		}
	}
	return ""
}

// usesSandbox reports whether the model has a tool that can read files in the sandbox.
func (t *Toolset) usesSandbox() bool {
	for _, tool := range t.tools {
		if !tool.NoSandbox {
			return true
		}
	}
	return false
}
