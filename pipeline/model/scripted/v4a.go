package scripted

import (
	"errors"
	"fmt"
	"strings"
)

// replaceScript is patch's replace mode as a Python program: exact text, once unless all are wanted, line ends of
// the file kept.
func replaceScript(path, old, new string, all bool) string {
	count := "1"
	if all {
		count = "-1"
	}
	return "import os\n" +
		"path = os.path.expanduser(" + literal(path) + ")\n" +
		"old = " + literal(old) + "\n" +
		"new = " + literal(new) + "\n" +
		"count = " + count + "\n" + `
with open(path, encoding="utf-8", newline="") as f:
    text = f.read()
if old not in text and "\r\n" in text:
    old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
found = text.count(old)
if found == 0 or (found > 1 and count == 1):
    raise SystemExit(f"{path}: {found} matches")
with open(path, "w", encoding="utf-8", newline="") as f:
    f.write(text.replace(old, new, count))
print(f"{path}: replaced {found}")
`
}

// v4aFile is what a V4A patch does to one file.
type v4aFile struct {
	Kind  string    `json:"kind"` // update, add, delete, move
	Path  string    `json:"path"`
	To    string    `json:"to"`
	Text  string    `json:"text"`
	Hunks []v4aHunk `json:"hunks"`
}

type v4aHunk struct {
	Hint string   `json:"hint"`
	Old  []string `json:"old"`
	New  []string `json:"new"`
}

// v4aScript is a V4A patch as a Python program that applies it whole or not at all.
func v4aScript(patch string) (string, error) {
	files, err := parseV4A(patch)
	if err != nil {
		return "", err
	}
	return "import json, os\n" +
		"patch = json.loads(" + literal(literal(files)) + ")\n" + `
def find(lines, want, start):
    for same in (str, str.rstrip, str.strip):
        key = [same(w) for w in want]
        for i in range(start, len(lines) - len(want) + 1):
            if [same(x) for x in lines[i:i + len(want)]] == key:
                return i
    raise SystemExit("no match for " + repr(want))

writes, removes = {}, []
for f in patch:
    path, to = f["path"], f["to"]
    if f["kind"] == "add":
        if os.path.exists(path):
            raise SystemExit(path + " exists")
        writes[path] = f["text"]
        continue
    with open(path, encoding="utf-8", newline="") as h:
        text = h.read()
    if f["kind"] != "update":
        removes.append(path)
        if to:
            writes[to] = text
        continue
    end = "\r\n" if "\r\n" in text else "\n"
    lines, at = text.replace("\r\n", "\n").split("\n"), 0
    for hunk in f["hunks"]:
        if hunk["hint"]:
            at = next((i + 1 for i in range(at, len(lines)) if hunk["hint"] in lines[i]), at)
        if hunk["old"]:
            at = find(lines, hunk["old"], at)
        elif not hunk["hint"]:
            at = len(lines) - (lines[-1] == "")
        lines[at:at + len(hunk["old"])] = hunk["new"]
        at += len(hunk["new"])
    writes[to or path] = end.join(lines)
    if to:
        removes.append(path)
for path in removes:
    os.remove(path)
for path, text in writes.items():
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as h:
        h.write(text)
print("patched", ", ".join(sorted(set(writes) | set(removes))))
`, nil
}

// parseV4A reads the patch format. It is stricter than the tool needs to be: golds are well-formed.
func parseV4A(patch string) ([]v4aFile, error) {
	var files []v4aFile
	var hunk *v4aHunk
	begun := false
	for _, line := range strings.Split(strings.TrimRight(patch, "\n"), "\n") {
		directive, ok := strings.CutPrefix(line, "*** ")
		if ok {
			hunk = nil
			verb, arg, _ := strings.Cut(directive, ": ")
			arg = strings.TrimSpace(arg)
			switch verb {
			case "Begin Patch":
				begun = true
			case "End Patch":
				return files, nil
			case "Update File":
				files = append(files, v4aFile{Kind: "update", Path: arg})
			case "Add File":
				files = append(files, v4aFile{Kind: "add", Path: arg})
			case "Delete File":
				files = append(files, v4aFile{Kind: "delete", Path: arg})
			case "Move File":
				from, to, ok := strings.Cut(arg, " -> ")
				if !ok {
					return nil, fmt.Errorf("move %q (want a -> b)", arg)
				}
				files = append(files, v4aFile{Kind: "move", Path: strings.TrimSpace(from), To: strings.TrimSpace(to)})
			case "Move to":
				if len(files) == 0 {
					return nil, errors.New("move before any file")
				}
				files[len(files)-1].To = arg
			case "End of File":
			default:
				return nil, fmt.Errorf("unknown line %q", line)
			}
			continue
		}
		if !begun {
			continue
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("line %q before any file", line)
		}
		file := &files[len(files)-1]
		if file.Kind == "add" {
			file.Text += strings.TrimPrefix(line, "+") + "\n"
			continue
		}
		if hint, ok := strings.CutPrefix(line, "@@"); ok {
			hint = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(hint), "@@"))
			file.Hunks = append(file.Hunks, v4aHunk{Hint: hint})
			hunk = &file.Hunks[len(file.Hunks)-1]
			continue
		}
		if hunk == nil {
			file.Hunks = append(file.Hunks, v4aHunk{})
			hunk = &file.Hunks[len(file.Hunks)-1]
		}
		mark, text := " ", ""
		if line != "" { // an empty line is an empty line of context
			mark, text = line[:1], line[1:]
		}
		switch mark {
		case " ":
			hunk.Old, hunk.New = append(hunk.Old, text), append(hunk.New, text)
		case "-":
			hunk.Old = append(hunk.Old, text)
		case "+":
			hunk.New = append(hunk.New, text)
		default:
			return nil, fmt.Errorf("line %q begins with none of space, + and -", line)
		}
	}
	return nil, errors.New("patch without an end")
}
