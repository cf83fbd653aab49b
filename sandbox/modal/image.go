package modal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	modal "github.com/modal-labs/modal-client/go"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented"
)

// image is the initial image of machines.
type image struct {
	service   *service
	reference string

	// turn is held while a goroutine prepares the image for others, and guards the fields below.
	turn  chan struct{}
	base  *modal.Image // nil until it was built
	layer *modal.Image // base with the agent in it; nil until a second machine needs it
	use   *rented.Image
}

// machine makes a machine of the image. The first one reads the image's settings; the second one seals a layer with the agent
// for all later ones.
func (i *image) machine(ctx context.Context, spec sandbox.Spec) (rented.Machine, error) {
	select {
	case i.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if layer, use := i.layer, i.use; layer != nil {
		<-i.turn
		sb, err := i.service.create(ctx, layer, spec)
		if err == nil {
			return &machine{service: i.service, sb: sb, use: *use}, nil
		}
		// Modal deletes it after a while.
		if notFound(err) && i.expired(ctx, layer) {
			return i.machine(ctx, spec)
		}
		return nil, err
	}
	defer func() { <-i.turn }()
	if err := i.build(ctx); err != nil {
		return nil, err
	}
	sb, err := i.service.create(ctx, i.base, spec)
	if err != nil {
		return nil, err
	}
	if err := i.prepare(ctx, sb); err != nil {
		return nil, errors.Join(err, terminate(context.WithoutCancel(ctx), sb))
	}
	return &machine{service: i.service, sb: sb, use: *i.use}, nil
}

// expired forgets a layer.
func (i *image) expired(ctx context.Context, layer *modal.Image) bool {
	select {
	case i.turn <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if i.layer == layer {
		i.layer = nil
	}
	<-i.turn
	return true
}

// build makes Modal fetch the image.
func (i *image) build(ctx context.Context) error {
	if i.base != nil {
		return nil
	}
	var err error
	base := i.service.client.Images.FromRegistry(i.reference, nil)
	if strings.HasPrefix(i.reference, "im-") {
		base, err = i.service.client.Images.FromID(ctx, i.reference, nil)
	}
	if err == nil {
		base, err = base.Build(ctx, i.service.app, nil)
	}
	if err != nil {
		return fmt.Errorf("image %s: %w", i.reference, explain(err))
	}
	i.base = base
	return nil
}

// prepare writes the agent into a machine of the base image.
func (i *image) prepare(ctx context.Context, sb *modal.Sandbox) error {
	a := i.service.config.agent
	if err := sb.Filesystem.WriteBytes(ctx, a.Content, a.Path, nil); err != nil {
		return fmt.Errorf("write the agent to %s: %w", a.Path, explain(err))
	}
	use, err := survey(ctx, sb, a.Path)
	if err != nil {
		return err
	}
	if i.use == nil {
		i.use = &use
		return nil
	}
	layer, err := sb.SnapshotFilesystem(ctx, &modal.SandboxSnapshotFilesystemParams{Timeout: sealingTime, TTL: sealTime})
	if err != nil {
		return fmt.Errorf("seal the image %s with the agent: %w", i.reference, explain(err))
	}
	i.layer = layer
	return nil
}

// survey makes the agent executable, and reads the environment and the working directory of the image.
func survey(ctx context.Context, sb *modal.Sandbox, path string) (rented.Image, error) {
	const script = `chmod 755 "$1" && pwd && exec cat /proc/self/environ`
	fail := func(err error) (rented.Image, error) {
		return rented.Image{}, fmt.Errorf("ask the image for its environment: %w", explain(err))
	}
	process, err := sb.Exec(ctx, []string{"/bin/sh", "-c", script, "sh", path}, nil)
	if err != nil {
		return fail(err)
	}
	defer process.Stdout.Close()
	defer process.Stderr.Close()
	stop := context.AfterFunc(ctx, func() { process.Stdout.Close() })
	defer stop()
	out, err := io.ReadAll(io.LimitReader(process.Stdout, 1<<20))
	if err != nil {
		return fail(err)
	}
	code, err := process.Wait(ctx, nil)
	if err == nil && code != 0 {
		said, _ := io.ReadAll(io.LimitReader(process.Stderr, 4<<10))
		err = fmt.Errorf("exit code %d: %s", code, bytes.TrimSpace(said))
	}
	if err != nil {
		return fail(err)
	}
	workdir, environ, _ := strings.Cut(string(out), "\n")
	return rented.Image{Workdir: workdir, Env: rented.Environment(environ, "MODAL_")}, nil
}
