package tools

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/tools/skills"
)

// maxSkillEvents bounds the events of an episode.
const maxSkillEvents = 2000

// Skills are those of an episode.
type Skills struct{ *skills.View }

// Trace is what the row keeps of them, when the episode has ended with these calls and these changed files of its folder.
func (s Skills) Trace(calls []episode.ToolCall, changed []string) *episode.Skills {
	trace := s.View.Trace()
	if s.Has() {
		turn := 0
		if len(calls) > 0 {
			turn = calls[len(calls)-1].Turn
		}
		trace.Events = slices.Concat(trace.Events, skillEvents(s.View, calls), s.Changed(turn, changed))
	}
	return trace
}

// skillEvents are the uses of skills that an episode's calls made, in their order. They are a function of the calls alone.
func skillEvents(view *skills.View, calls []episode.ToolCall) (events []episode.SkillEvent) {
	listed, made := map[string]bool{}, map[skills.Call]bool{}
	for i := range calls {
		call := &calls[i]
		if call.SameAs != "" {
			continue
		}
		for _, e := range eventsOf(view, call, made) {
			if e.Kind == episode.SkillListed {
				if listed[e.Skill+e.Digest] {
					continue
				}
				listed[e.Skill+e.Digest] = true
			}
			if e.Turn = call.Turn; len(events) < maxSkillEvents {
				events = append(events, e)
			}
		}
		made[skills.Call{Turn: call.Turn, Parent: call.Parent, ID: call.ID}] = true
	}
	return events
}

func eventsOf(view *skills.View, call *episode.ToolCall, made map[skills.Call]bool) []episode.SkillEvent {
	if call.Toolset == skillsToolset {
		var use skillUse
		_ = json.Unmarshal(call.Source, &use) // what a tool of ours wrote, or nothing
		return use.Events
	}
	if call.Status == episode.CallDenied || !bytes.Contains(call.Arguments, []byte("/skills/")) {
		return nil
	}
	var args struct{ Command, Workdir, Code, Path string }
	if json.Unmarshal(call.Arguments, &args) != nil {
		return nil
	}
	touched := touches{view: view, made: made}
	switch call.Name {
	case "terminal":
		touched.shell(args.Command, args.Workdir)
	case "execute_code":
		for _, name := range skillPath.FindAllString(args.Code, -1) {
			touched.add(name, true)
		}
	default:
		touched.add(args.Path, false)
	}
	return touched.events
}

// skillPath is a path of a skill in a text.
var skillPath = regexp.MustCompile(`(/[\w./-]*)?/skills/[\w./-]+`)

// touches are the files of skills that a call touched.
type touches struct {
	view   *skills.View
	made   map[skills.Call]bool
	events []episode.SkillEvent
}

// add notes a path. Code that names a script runs it, most likely.
func (t *touches) add(name string, run bool) {
	s, file := t.view.At(t.made, name)
	if s == nil || s.Files[file] == nil {
		return
	}
	e := episode.SkillEvent{
		Kind: episode.SkillFile, Skill: s.Name, File: file, Digest: s.FileDigest(file), Bytes: int64(len(s.Files[file])),
	}
	if file == skills.Manual {
		e.Kind = episode.SkillViewed
		e.File, e.Digest, e.Bytes = "", s.Digest(), int64(s.Size())
	} else if run {
		e.Kind = episode.SkillScript
	}
	if !slices.Contains(t.events, e) {
		t.events = append(t.events, e)
	}
}

// launcher is a program that runs another one, or a script.
var launcher = regexp.MustCompile(`^(env|exec|time|nice|nohup|timeout|sudo|xargs|source|\.|(ba|da|z)?sh|python[\d.]*|node|perl|` +
	`ruby|awk|sqlite3|jq|make)$`)

// shell reads a command line: what it runs, and what it names.
func (t *touches) shell(line, dir string) {
	for _, words := range parseShell(line).commands {
		if words[0] == "cd" && len(words) > 1 {
			dir = from(dir, words[1])
			continue
		}
		launches, launched := launcher.MatchString(path.Base(words[0])), false
		for i, word := range words {
			name := from(dir, word)
			_, file := t.view.At(t.made, name)
			// Of a launcher's words, the first that is a script is what it runs.
			runs := i == 0 || launches && !launched && strings.HasPrefix(file, "scripts/")
			launched = launched || i > 0 && runs
			t.add(name, runs)
		}
	}
}

// from is a path as it is seen from a folder.
func from(dir, name string) string {
	if dir == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}
