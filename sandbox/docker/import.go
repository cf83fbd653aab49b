package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/containerd/errdefs"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"trajgen/sandbox"
)

// Import implements sandbox.Importer.
func (b *backend) Import(ctx context.Context, reference string, use sandbox.Image, files func(io.Writer) error) error {
	_, err := b.engine.ImageInspect(ctx, reference)
	if !errdefs.IsNotFound(err) {
		return err
	}
	if err := b.engine.load(ctx, reference, use, files); err != nil {
		return fmt.Errorf("give the engine the image %s: %w", reference, err)
	}
	return nil
}

// load sends an archive of the image. The engine wants to know the size and the hash of the files before they come, so they are
// read twice.
func (e *engine) load(ctx context.Context, reference string, use sandbox.Image, files func(io.Writer) error) error {
	if theirs := goarch(e.info.Architecture); theirs != runtime.GOARCH {
		return fmt.Errorf("the engine's machine is %s, and the image is for %s", theirs, runtime.GOARCH)
	}
	sum, size := sha256.New(), counter(0)
	if err := files(io.MultiWriter(sum, &size)); err != nil {
		return err
	}
	config, err := json.Marshal(v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", Config: v1.Config{Env: use.Env, WorkingDir: use.Workdir, User: use.User, Entrypoint: use.Entrypoint, Cmd: use.Command},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sum.Sum(nil))}}},
	})
	if err != nil {
		return err
	}
	const layer = "layer.tar"
	named := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{{"Config": named, "RepoTags": []string{reference}, "Layers": []string{layer}}})
	if err != nil {
		return err
	}
	read, write := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		w := tar.NewWriter(write)
		enter(w, &tar.Header{Name: "manifest.json", Mode: 0o644}, manifest)
		enter(w, &tar.Header{Name: named, Mode: 0o644}, config)
		err := w.WriteHeader(&tar.Header{Name: layer, Mode: 0o644, Size: int64(size)}) // which fails if those have
		if err == nil {
			err = files(w)
		}
		if err == nil {
			err = w.Close()
		}
		_ = write.CloseWithError(err)
		wrote <- err
	}()
	response, err := e.ImageLoad(ctx, read)
	if err == nil {
		err = errors.Join(said(response), response.Close())
	}
	_ = read.CloseWithError(io.ErrClosedPipe) // the engine may have given up before the end
	if failed := <-wrote; err == nil {
		err = failed
	}
	return err
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// said is the error in what the engine answers, one message after another.
func said(answer io.Reader) error {
	messages := json.NewDecoder(answer)
	for {
		var message struct{ Error string }
		switch err := messages.Decode(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case message.Error != "":
			return errors.New(message.Error)
		}
	}
}
