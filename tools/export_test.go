package tools

import (
	"testing"
	"time"
	"weak"

	"trajgen/registry"
)

// Edits exposes the matcher: the new text, the strategy and the number of replacements.
func Edits(text, old, new string) (string, string, int) {
	found := findEdits(text, old, new)
	changed, _ := textFile{text: text}.apply(found.edits)
	return changed, found.strategy, len(found.edits)
}

// Edit is a replacement of text[Start:End].
type Edit struct {
	Start, End int
	Text       string
}

// EditsOf exposes the matcher with the places.
func EditsOf(text, old, new string) (changed, strategy string, edits []Edit) {
	found := findEdits(text, old, new)
	for _, e := range found.edits {
		edits = append(edits, Edit{e.start, e.end, e.text})
	}
	changed, _ = textFile{text: text}.apply(found.edits)
	return changed, found.strategy, edits
}

// Replaced exposes what a patch in mode replace makes of a text, or why it is refused.
func Replaced(text, old, new string) (string, error) {
	file, _ := parseText([]byte(text))
	found, err := findReplacement(file, patchArgs{Path: "f", OldString: &old, NewString: &new})
	if err != nil {
		return "", err
	}
	changed, _ := file.apply(found.edits)
	return changed, nil
}

// Unescaped exposes the ways to read a text that was escaped once too often.
func Unescaped(text string) (read []string) {
	for how := escapes(1); how <= allEscapes; how++ {
		if plain, ok := how.undo(text, true); ok {
			read = append(read, plain)
		}
	}
	return read
}

// EditedFile exposes what becomes of the bytes of a file.
func EditedFile(raw, old, new string) string {
	file, ok := parseText([]byte(raw))
	if !ok {
		return raw
	}
	_, data := file.apply(findEdits(file.text, old, new).edits)
	return string(data)
}

// PlainPunctuation exposes how quotes, dashes and spaces are spelled for comparison.
func PlainPunctuation(text string) string { return string(plainPunctuation(text).text) }

// Patched exposes parser and locator of V4A: the text after the patch's first update.
func Patched(text, patch string) (string, error) {
	operations, err := parseV4A(patch)
	if err != nil {
		return "", err
	}
	for _, op := range operations {
		if op.kind != "update" {
			continue
		}
		file, _ := parseText([]byte(text))
		edits, err := hunkEdits(file.text, op.hunks)
		if err != nil {
			return "", err
		}
		_, data := file.apply(edits)
		return string(data), nil
	}
	return text, nil
}

// Foreground exposes the check of foreground commands.
func Foreground(command string) error { return checkForeground(command) }

// Clean exposes what a terminal makes of output that comes in the given pieces.
func Clean(limit int, pieces ...string) string {
	c := newCapture(limit, "chars")
	for _, piece := range pieces {
		c.Write([]byte(piece))
	}
	return c.text()
}

// SetCodeTimes changes until the test ends what time scripts get, and between SIGTERM and SIGKILL.
func SetCodeTimes(t *testing.T, timeout, grace time.Duration) {
	t.Helper()
	oldTimeout, oldGrace := codeTimeout, codeGrace
	t.Cleanup(func() { codeTimeout, codeGrace = oldTimeout, oldGrace })
	codeTimeout, codeGrace = timeout, grace
}

// ExitMeaning exposes the notes on exit codes.
func ExitMeaning(command string, code int) string { return exitMeaning(command, code) }

// FirstProcess is the oldest background process that is remembered, as long as anything holds it.
func FirstProcess(s *registry.Session) weak.Pointer[process] {
	return weak.Make(processesOf(s).list()[0])
}
