// Package world has the bundled corpus: a small encyclopedia of an invented world, with links, tables, dates in a calendar of its
// own, sources that contradict each other, and pages that are nearly alike. The questions of the dataset bundled/research are
// about it.
//
// scripts/world makes its pages from tables of facts. world.jsonl is there to be read; the program carries it packed.
package world

import (
	"bytes"
	"compress/bzip2"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

//go:embed world.jsonl.bz2
var packed []byte

// Document is a page.
type Document struct {
	ID    string `json:"id"`    // the end of its URL
	Title string `json:"title"` // unique, too
	URL   string `json:"url"`
	Text  string `json:"text"` // Markdown, with a sentence a line
}

// JSONL returns the pages as they stand in world.jsonl: one object a line, with the keys of Document.
func JSONL() io.Reader { return bzip2.NewReader(bytes.NewReader(packed)) }

// Documents yields the pages in the order of their titles. An error ends it.
func Documents() iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		decoder := json.NewDecoder(JSONL())
		for {
			var d Document
			err := decoder.Decode(&d)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				err = fmt.Errorf("read the bundled corpus: %w", err)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}
