package tools

// Edits exposes the matcher: the new text, the strategy and the number of replacements.
func Edits(text, old, new string) (string, string, int) {
	how, edits := findEdits(text, old, new)
	changed, _ := textFile{text: text}.apply(edits)
	return changed, how, len(edits)
}

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
