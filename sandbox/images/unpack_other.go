//go:build !linux

package images

import (
	"context"
	"errors"
	"io"

	"trajgen/sandbox"
)

// errNoLayers is why there are no stores on this system.
var errNoLayers = errors.New("layers of images are kept on Linux alone")

func (d *disk) probe(context.Context) error { return errNoLayers }

func (r *reader) fromDir(context.Context, reference) (*source, error) { return nil, errNoLayers }

func (d *disk) cover([]string, []layer) (*part, error) { return nil, errNoLayers }

func unpack(io.Reader, string, bool, *allowance) (layer, error) { return layer{}, errNoLayers }

func makeLayer(context.Context, string, bool, *budget, Fill) (layer, error) {
	return layer{}, errNoLayers
}

// Tar fails.
func (s *Store) Tar(sandbox.Image, io.Writer) error { return errNoLayers }

func syncTree(string) error { return errNoLayers }
