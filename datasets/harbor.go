package datasets

import (
	"context"
	"fmt"
	"strings"

	"trajgen/datasets/internal/harbor"
)

// harborPiece is a directory that is a task in Harbor's format, or has some below it; false for any other.
func harborPiece(dir string) (p piece, is bool, err error) {
	found, err := harbor.Open(dir)
	if err != nil || found == nil {
		return piece{}, false, err
	}
	p = piece{name: "harbor", path: dir, format: "harbor"}
	p.rows = func(yield func(row) bool) error { return harborRows(found, yield) }
	p.digest = func(ctx context.Context) (string, error) {
		sum, err := found.Digest(ctx)
		if err != nil {
			return "", fmt.Errorf("digest dataset %s: %w", dir, err)
		}
		return "sha256:" + sum, nil
	}
	return p, true, nil
}

// harborRows reads the tasks of a directory in the order of their paths.
func harborRows(found *harbor.Dir, yield func(row) bool) error {
	for task, err := range found.Rows() {
		if err != nil {
			return err
		}
		r := row{file: task.File, line: 1, text: task.Object}
		if len(task.Wrong) > 0 {
			r.text, r.broken = nil, strings.Join(task.Wrong, "; ")
		}
		if !yield(r) {
			return nil
		}
	}
	return nil
}
