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
	read, write := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := source.WriteContext(write)
		_ = write.CloseWithError(err)
		wrote <- err
	}()
	id, output, err := b.engine.build(ctx, read, options)
	_ = read.CloseWithError(io.ErrClosedPipe) // the engine may have given up before the end
	if failed := <-wrote; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return fail(build.Parse, "", failed)
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

// build builds what it reads.
func (e *engine) build(ctx context.Context, from io.Reader, options client.ImageBuildOptions) (id, output string, err error) {
	response, err := e.ImageBuild(ctx, from, options)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	return followed(response.Body)
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
