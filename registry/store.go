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
	"regexp"
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
func (p *prepared) limit() int {
	limit := p.session.cfg.Limits.Tools[p.call.Name]
	if limit <= 0 && p.tool != nil {
		limit = p.tool.MaxResult
	}
	switch {
	case limit > 0:
		return max(limit, minResult)
	case p.call.Parent != "":
		return maxNested
	}
	return DefaultMaxResult
}

// fit brings a result to its limit.
func (p *prepared) fit(ctx context.Context) {
	p.call.ResultBytes = len(p.call.Result)
	if limit := p.limit(); len(p.call.Result) > limit {
		p.call.Result, p.call.Stored = p.shorter(ctx, limit)
		p.call.Truncated = true
	}
}

// fitTurn brings the results of one turn to their limit together: the longest are stored first, and those that cannot be stored are
// cut last.
func (s *Session) fitTurn(ctx context.Context, calls []*prepared) {
	limit := cmp.Or(s.cfg.Limits.Turn, DefaultTurnResults)
	total := 0
	var long []*prepared
	for _, p := range calls {
		total += len(p.call.Result)
		if len(p.call.Result) >= largeEnough && p.call.Stored == "" && p.first == nil {
			long = append(long, p)
		}
	}
	rank := func(p *prepared) int {
		if p.tool == nil || p.tool.Reader {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(long, func(a, b *prepared) int {
		return cmp.Or(rank(a)-rank(b), len(b.call.Result)-len(a.call.Result))
	})
	for _, p := range long {
		if total <= limit || len(calls) == 1 && rank(p) > 0 {
			break
		}
		text, stored := p.shorter(ctx, largeEnough)
		for _, each := range calls {
			if each == p || each.first == p {
				total += len(text) - len(each.call.Result)
				s.change(each, func(call *episode.ToolCall) {
					call.Truncated = call.Truncated || call.Result != text
					call.Result, call.Stored = text, stored
				})
			}
		}
	}
}

// shorter stores a result that is over a limit, or cuts it. It returns the text that is shown, and where the whole is stored.
func (p *prepared) shorter(ctx context.Context, limit int) (text, stored string) {
	if box := p.keeper(); box != nil {
		long := &longResult{call: p}
		long.spread(p.call.Result, min(maxKept, limit/4))
		ending := ".txt"
		if long.field == "" {
			ending = ".json"
		}
		name := fmt.Sprintf("%d-%d-%s%s", p.call.Turn, p.call.Index, fileName(p.call.ID), ending)
		long.path = path.Join(box.Layout().Tmp, storeDir, p.session.cfg.Folder, name)
		if p.session.store(ctx, box, long) == nil {
			if text := long.show(limit); len(text) <= limit {
				return text, long.path
			}
		}
	}
	return fitResult(p.call.Result, limit, p.failure), ""
}

// keeper is the sandbox in which the result can be stored; nil for a result that the model could not read from there, and for one
// that a program gets.
func (p *prepared) keeper() sandbox.Sandbox {
	box := p.session.opened()
	if box == nil || p.tool == nil || p.tool.Reader || p.call.Parent != "" || box.Layout().Tmp == "" || !p.session.tools.usesSandbox() {
		return nil
	}
	return box
}

// store writes the whole result into the sandbox. A link that the agent planted at its path cannot redirect it.
func (s *Session) store(ctx context.Context, box sandbox.Sandbox, long *longResult) error {
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

// longResult is a result as it is stored and shown.
type longResult struct {
	call  *prepared
	path  string
	data  string
	field string   // whose text data is, "" when data is the whole result
	kept  []string // the other members
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

var noFileName = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

// fileName makes an id, which a model may have written, safe as a file name.
func fileName(id string) string {
	name := noFileName.ReplaceAllString(id, "_")
	if name == id && len(id) <= maxStoreName {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return name[:min(len(name), maxStoreName-9)] + "-" + hex.EncodeToString(sum[:4])
}

// show is a stored result's beginning and the path of the rest, as far as they fit the limit. An error stays an error.
func (l *longResult) show(limit int) string {
	failure := quoteWithin(l.call.failure, min(maxKept, limit)/4)
	for room := min(maxPreview, limit/2); ; room /= 2 {
		if text := l.envelope(failure, room); len(text) <= limit || room == 0 {
			return text
		}
	}
}

func (l *longResult) envelope(failure string, room int) string {
	preview := wholeRunes(l.data[:min(room, len(l.data))])
	if end := strings.LastIndexByte(preview, '\n'); end > len(preview)/2 {
		preview = preview[:end+1]
	}
	what := "it"
	if l.field != "" {
		what = quote(l.field)
	}
	note := fmt.Sprintf("the result was too long: preview is the beginning of %s, which lies whole in the sandbox at stored", what)
	if reader := l.call.session.tools.reader(); reader != "" {
		note += fmt.Sprintf("; read on there with %s from line %d of %d", reader,
			strings.Count(preview, "\n")+1, strings.Count(strings.TrimSuffix(l.data, "\n"), "\n")+1)
	}
	var b strings.Builder
	b.WriteByte('{')
	if l.call.failure != "" {
		b.WriteString(`"error":` + failure + ",")
	}
	for _, each := range l.kept {
		if said := l.call.failure != "" && strings.HasPrefix(each, `"error":`); !said && !strings.HasPrefix(each, `"truncated":`) {
			b.WriteString(each + ",")
		}
	}
	fmt.Fprintf(&b, `"truncated":true,"original_bytes":%d,"stored":%s,"note":%s,"preview":%s}`,
		l.call.call.ResultBytes, quote(l.path), quote(note), quote(preview))
	return b.String()
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
