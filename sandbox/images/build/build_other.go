//go:build !linux

package build

import (
	"context"
	"errors"
)

// errNoBuilds says why this system cannot build.
var errNoBuilds = errors.New("images are built on Linux alone")

// Builder builds images, on Linux.
type Builder struct{}

// New returns a builder that builds nothing.
func New(Options) *Builder { return &Builder{} }

// Build fails.
func (b *Builder) Build(context.Context, Source) (Image, error) { return Image{}, errNoBuilds }

// Name fails.
func (b *Builder) Name(context.Context, string, string) error { return errNoBuilds }

// Close does nothing.
func (b *Builder) Close() error { return nil }
