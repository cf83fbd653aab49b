package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ByName asks, of several models, the one that a request's Sampling names.
type ByName map[string]Model

// Complete passes the request on.
func (m ByName) Complete(ctx context.Context, req Request) (Reply, error) {
	chosen, ok := m[req.Sampling.Model]
	if !ok {
		return Reply{}, &Error{Class: ClassModelNotFound, Fatal: true, Message: fmt.Sprintf("the request names model %q (have %s)",
			req.Sampling.Model, strings.Join(slices.Sorted(maps.Keys(m)), ", "))}
	}
	return chosen.Complete(ctx, req)
}

// Paused reports whether all models are in an outage.
func (m ByName) Paused() bool {
	for _, each := range m {
		if p, ok := each.(interface{ Paused() bool }); !ok || !p.Paused() {
			return false
		}
	}
	return len(m) > 0
}
