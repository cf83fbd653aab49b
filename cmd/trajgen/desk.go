package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"trajgen/outputs/media"
	"trajgen/pipeline/rollout"
	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// desk is a session of tools outside of a run, in a sandbox of its own.
type desk struct {
	session *registry.Session
	sandbox sandbox.Sandbox
	images  *media.Store // nil where they are not shown
	closers []func() error
}

// selected are the tools that the flags enable.
func (o callOptions) selected(box *toolbox) (*registry.Toolset, error) {
	enabled := o.toolsets
	if len(enabled) == 0 {
		enabled = []string{"all"}
	}
	toolset, err := box.registry.Select(enabled, nil)
	return toolset, usage(err)
}

// begin opens a desk, whose sandbox has the id.
func (o callOptions) begin(ctx context.Context, box *toolbox, id string, policy *tools.CommandPolicy) (_ *desk, err error) {
	d := &desk{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	toolset, err := o.selected(box)
	if err != nil {
		return nil, err
	}
	var own []any
	var folder *sandbox.Folder
	if o.skills || box.file.Skills.Given() {
		opened, err := box.backend()
		if err != nil {
			return nil, usage(err)
		}
		skills, err := box.file.CallSkills(opened.Guarantees(), toolset, o.warn)
		if err != nil {
			return nil, usage(err)
		}
		own, folder = []any{skills}, skills.Folder()
	}
	if d.sandbox, err = o.openSandbox(ctx, box, id, folder); err != nil {
		return nil, err
	}
	d.closers = append(d.closers, d.sandbox.Close)
	var guard *registry.Guardrails
	if box.file.Tools.Guardrails != rollout.GuardOff {
		guard = registry.NewGuardrails()
	}
	backend, sites := func() (sandbox.Backend, error) { return box.backend() }, o.sites
	if o.task != nil {
		sites = o.task.Sites
	}
	services, closeServices, err := run.Services(ctx, &box.file, backend, id, sites)
	if err != nil {
		return nil, usage(err)
	}
	d.closers = append(d.closers, closeServices)
	config := registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return d.sandbox, nil },
		Hooks:   policy.Hook(), Guardrails: guard, Services: append(services, own...),
		Secrets: box.file.Secrets(box.registry), Limits: box.file.Tools.Results(),
	}
	if o.sees {
		d.images = &media.Store{}
		config.Sees, config.Images = true, d.images
		d.closers = append(d.closers, d.images.Close)
	}
	d.session = toolset.Session(config)
	d.closers = append(d.closers, func() error { d.session.Close(); return nil })
	return d, nil
}

// close ends the session, and then what it used.
func (d *desk) close() error {
	var errs []error
	for _, closer := range slices.Backward(d.closers) {
		errs = append(errs, closer())
	}
	d.closers = nil
	return errors.Join(errs...)
}

// openSandbox opens a sandbox with the workspace in it, like those of the run file when there is one.
func (o callOptions) openSandbox(
	ctx context.Context, box *toolbox, id string, readOnly *sandbox.Folder,
) (sandbox.Sandbox, error) {
	folder, err := readWorkspace(o.workspace)
	if err != nil {
		return nil, usage(err)
	}
	backend, err := box.backend()
	if err != nil {
		return nil, usage(err)
	}
	spec := sandbox.Spec{}
	if o.source.path != "" {
		spec = box.file.Sandbox.Spec()
	}
	if spec.Network != sandbox.NetworkAllowlist {
		spec.Allow = nil
	}
	spec.ID, spec.ReadOnly, spec.Image = id, readOnly, cmp.Or(o.image, spec.Image)
	if o.task != nil {
		spec = rollout.SpecOf(o.task, spec)
	}
	if spec.Image != "" || o.source.path != "" || o.task != nil {
		if err := backend.Offers(spec.Network, spec.Image); err != nil {
			return nil, usage(err)
		}
	}
	sb, err := backend.Open(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if err := folder.put(ctx, sb); err != nil {
		return nil, errors.Join(fmt.Errorf("copy %s into the sandbox: %w", o.workspace, err), sb.Close())
	}
	if o.task != nil {
		if err := rollout.Furnish(ctx, o.task, sb); err != nil {
			return nil, errors.Join(err, sb.Close())
		}
	}
	return sb, nil
}
