package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
)

// Import implements sandbox.Importer.
func (b *backend) Import(ctx context.Context, reference string, use sandbox.Image, files func(io.Writer) error) error {
	_, err := b.engine.ImageInspect(ctx, reference)
	if !errdefs.IsNotFound(err) {
		return err
	}
	settings, err := changes(use)
	if err != nil {
		return fmt.Errorf("give the engine the image %s: %w", reference, err)
	}
	read, write := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := files(write)
		_ = write.CloseWithError(err)
		wrote <- err
	}()
	response, err := b.engine.ImageImport(ctx, client.ImageImportSource{Source: read, SourceName: "-"}, reference, client.ImageImportOptions{Changes: settings})
	if err == nil {
		err = errors.Join(said(response), response.Close())
	}
	_ = read.CloseWithError(io.ErrClosedPipe) // the engine may have given up before the end
	err = cmp.Or(err, <-wrote)
	if err != nil {
		return fmt.Errorf("give the engine the image %s: %w", reference, err)
	}
	return nil
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

// changes are the instructions that give an image its settings.
func changes(use sandbox.Image) (all []string, err error) {
	// The engine expands variables, and reads a line as a Dockerfile's.
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`)
	for _, kv := range use.Env {
		if key, value, ok := strings.Cut(kv, "="); ok {
			if strings.Contains(value, "\n") {
				return nil, fmt.Errorf("its variable %s has several lines, which the engine does not take", key)
			}
			all = append(all, fmt.Sprintf(`ENV %s="%s"`, key, quoted.Replace(value)))
		}
	}
	if path.IsAbs(use.Workdir) {
		all = append(all, "WORKDIR "+quoted.Replace(use.Workdir))
	}
	if use.User != "" {
		all = append(all, "USER "+use.User)
	}
	return all, nil
}
