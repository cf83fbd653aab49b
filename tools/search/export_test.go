package search

import (
	"bytes"
	"encoding/json"
)

// Run is the helper as the sandbox calls it.
func Run(args Args) (Found, error) {
	input, err := json.Marshal(args)
	if err != nil {
		return Found{}, err
	}
	var output bytes.Buffer
	helper(nil, bytes.NewReader(input), &output, &output)
	var found Found
	return found, json.Unmarshal(output.Bytes(), &found)
}

// Counted is the number of lines that match, and what package regexp says of it, line by line.
func Counted(pattern string, text []byte) (got, want int, err error) {
	p, err := newPattern(pattern)
	if err != nil {
		return 0, 0, err
	}
	most := len(text) + 1
	got = p.count(text, most)
	for at := 0; at < len(text); {
		end := lineEnd(text, at)
		if p.line.Match(trimEnd(text[at:end])) {
			want++
		}
		at = end
	}
	return got, want, nil
}
