package datasets

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"trajgen/datasets/internal/harbor"
)

// isHarbor tells a directory that is a task in Harbor's format, or has some below it.
func isHarbor(dir string) (bool, error) {
	found, err := harbor.Open(dir)
	return found != nil, err
}

// harborRows reads the tasks of a directory in the order of their paths.
func harborRows(dir string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		found, err := harbor.Open(dir)
		if err == nil && found == nil {
			err = fmt.Errorf("there is no task.toml any more")
		}
		if err != nil {
			yield(row{}, fmt.Errorf("read dataset %s: %w", dir, err))
			return
		}
		for task, err := range found.Rows() {
			if err != nil {
				yield(row{}, fmt.Errorf("read dataset %s: %w", dir, err))
				return
			}
			r := row{file: task.File, line: 1, text: task.Object}
			if len(task.Wrong) > 0 {
				r.text, r.broken = nil, strings.Join(task.Wrong, "; ")
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func harborDigest(ctx context.Context, dir string) (string, error) {
	found, err := harbor.Open(dir)
	if err == nil && found == nil {
		err = fmt.Errorf("there is no task.toml any more")
	}
	if err != nil {
		return "", fmt.Errorf("digest dataset %s: %w", dir, err)
	}
	sum, err := found.Digest(ctx)
	if err != nil {
		return "", fmt.Errorf("digest dataset %s: %w", dir, err)
	}
	return "sha256:" + sum, nil
}
