package sandbox

import (
	"context"
	"io"
)

// ImageStore turns references into file systems on this machine's disk.
type ImageStore interface {
	// Find returns an image, which it fetches and unpacks when the store does not have it yet. Concurrent calls for one image
	// fetch it once. The image stays on disk as long as the store does. Errors name the reference.
	Find(ctx context.Context, reference string) (Image, error)
	// Dir is a directory that holds all layers of all images.
	Dir() string
}

// Image is a file system in layers, with the settings that the image brings.
type Image struct {
	// Digest names the content: equal digests are equal images.
	Digest string
	// Layers are directories below the store's Dir, relative to it, the uppermost first. They are those of an overlay file
	// system that was mounted with the option userxattr: white-outs are character devices 0:0, and a directory with the
	// attribute user.overlay.opaque hides what lies below. Sandboxes do not change them.
	Layers  []string
	Env     []string // K=V
	Workdir string   // "" when the image names none
	User    string   // as the image names it; "" is root
	// Entrypoint and Command are what the image starts.
	Entrypoint, Command []string
}

// Importer is a Backend with images of its own, such as an engine's, that takes images which were built elsewhere.
type Importer interface {
	// Import gives the backend an image under a reference, unless it has that. files writes the file system as a tarball.
	Import(ctx context.Context, reference string, use Image, files func(io.Writer) error) error
}
