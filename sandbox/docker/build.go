package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/errdefs"
	apibuild "github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
	"trajgen/sandbox/images/build"
)

// BuildImage implements build.Engine, with the engine's own builder.
func (b *backend) BuildImage(ctx context.Context, source build.Source, network sandbox.Network) (string, error) {
	fail := func(reason, output string, err error) (string, error) {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", &build.Error{Dockerfile: source.Path(), Reason: reason, Output: output, Err: err}
	}
	options := client.ImageBuildOptions{
		Dockerfile: source.File(), Target: source.Target, BuildArgs: map[string]*string{}, Version: apibuild.BuilderV1,
		Remove: true, ForceRemove: true,
	}
	for key, value := range source.Args {
		options.BuildArgs[key] = &value
	}
	switch network {
	case sandbox.NetworkFull:
	case sandbox.NetworkLoopback:
		options.NetworkMode = "none"
	default:
		return fail(build.Machine, "", fmt.Errorf("native sandboxes cannot run here, and the engine cannot keep builds to some sites: "+
			"set sandbox.build_network to full or none, or make room for native sandboxes (trajgen doctor)"))
	}
	var id, output string
	var err error
	for range buildTries {
		if id, output, err = b.engine.build(ctx, source, options); !lostImage(err) {
			break
		}
	}
	if failed, ok := errors.AsType[*contextError](err); ok {
		return fail(build.Parse, "", failed.error)
	}
	if err != nil {
		return fail(reasonOf(err), output, err)
	}
	reference := "trajgen/built:" + strings.TrimPrefix(id, "sha256:")
	if _, err := b.engine.ImageTag(ctx, client.ImageTagOptions{Source: id, Target: reference}); err != nil {
		return fail(build.Machine, "", err)
	}
	return reference, nil
}

// buildTries is how often a build is begun where others remove images meanwhile.
const buildTries = 5

// lostImage reports whether a build failed because another one removed an image: podman lists all images, to find what it has built before,
// and gives up when one of them has gone until it looks at it.
func lostImage(err error) bool {
	said, ok := errors.AsType[*buildError](err)
	return ok && said.Code == 0 && strings.Contains(said.Message, "layer not known")
}

// contextError is an error of what a build is given to read.
type contextError struct{ error }

// build builds a source.
func (e *engine) build(ctx context.Context, source build.Source, options client.ImageBuildOptions) (id, output string, err error) {
	read, write := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := source.WriteContext(write)
		_ = write.CloseWithError(err)
		wrote <- err
	}()
	response, err := e.ImageBuild(ctx, read, options)
	if err == nil {
		id, output, err = followed(response.Body)
		_ = response.Body.Close()
	}
	_ = read.CloseWithError(io.ErrClosedPipe) // the engine may have given up before the end
	if failed := <-wrote; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		err = &contextError{failed}
	}
	return id, output, err
}

// buildError is what the engine says of a build that failed. Code is the command's exit status.
type buildError struct {
	Code    int
	Message string
}

func (e *buildError) Error() string { return e.Message }

// followed reads what a build says, to its end: the image, or an error; and the end of what was printed.
func followed(answer io.Reader) (id, output string, err error) {
	const kept = 4 << 10
	messages := json.NewDecoder(answer)
	for {
		var message struct {
			Stream, Error string
			ErrorDetail   *buildError
			Aux           struct{ ID string }
		}
		switch err := messages.Decode(&message); {
		case errors.Is(err, io.EOF) && id == "":
			return "", output, errors.New("the engine named no image")
		case errors.Is(err, io.EOF):
			return id, output, nil
		case err != nil:
			return "", output, err
		case message.ErrorDetail != nil && message.ErrorDetail.Message != "":
			return "", output, message.ErrorDetail
		case message.Error != "":
			return "", output, &buildError{Message: message.Error}
		}
		if message.Aux.ID != "" {
			id = message.Aux.ID
		}
		if output += message.Stream; len(output) > 2*kept {
			output = strings.ToValidUTF8(output[len(output)-kept:], "")
		}
	}
}

// reasonOf classifies an error, of which engines often give no more than words.
func reasonOf(err error) string {
	said, ok := errors.AsType[*buildError](err)
	switch {
	case errdefs.IsInvalidArgument(err):
		return build.Parse
	case !ok:
		return build.Machine
	case said.Code != 0:
		return build.Command
	}
	text := strings.ToLower(said.Message)
	for _, known := range []struct{ words, reason string }{
		{"exit status", build.Command}, {"copy failed", build.Copy}, {"add failed", build.Copy}, {"no such file", build.Copy},
		{"unknown instruction", build.Parse}, {"pull access denied", build.FromImage}, {"manifest", build.FromImage}, {"/v2/", build.FromImage}, {"creating build container", build.FromImage},
	} {
		if strings.Contains(text, known.words) {
			return known.reason
		}
	}
	return build.Machine
}
