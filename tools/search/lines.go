package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// part is the matches of a file that are on the page: from from to before to, counted from 0.
type part struct {
	entry
	from, to int
}

// lines adds the matching lines with their context. The file may have changed since its matches were counted.
func (p part) lines(all []Line, m *matcher, context int) ([]Line, error) {
	number, n := 0, 0
	var before []string // the last lines, as many as are context
	open := len(all)    // of the lines whose context may go on, the first
	var buffer []byte
	err := chunks(p.name, &buffer, func(text []byte) bool {
		for len(text) > 0 {
			end := lineEnd(text, 0)
			whole, line := text[:end], trimEnd(text[:end])
			text = text[end:]
			number++
			for ; open < len(all) && len(all[open].After) >= context; open++ {
			}
			for i := open; i < len(all); i++ {
				all[i].After = append(all[i].After, shownLine(line))
			}
			if n < p.to && m.match(whole) {
				if n >= p.from {
					all = append(all, Line{Path: p.shown, Line: number, Content: shownLine(line), Before: append([]string(nil), before...)})
				}
				n++
			}
			if n == p.to && (context == 0 || open == len(all)) {
				return false
			}
			if context > 0 {
				if len(before) == context {
					before = append(before[:0], before[1:]...)
				}
				before = append(before, shownLine(line))
			}
		}
		return true
	})
	return all, err
}

const maxShownLine = 500

func shownLine(line []byte) string {
	return firstChars(strings.ToValidUTF8(string(line), "\uFFFD"), maxShownLine)
}

func firstChars(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i] + "..."
		}
		n--
	}
	return text
}

// Counts is an object in the order in which the files were found.
type Counts []count

type count struct {
	path string
	n    int
}

// MarshalJSON writes {"path": n, ...}.
func (c Counts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, each := range c {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(each.path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%d", name, each.n)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes, in that order.
func (c *Counts) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	*c = Counts{}
	for decoder.More() {
		var each count
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		each.path, _ = key.(string)
		if err := decoder.Decode(&each.n); err != nil {
			return err
		}
		*c = append(*c, each)
	}
	return nil
}
