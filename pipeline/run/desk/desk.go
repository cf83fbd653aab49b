// Package desk calls tools outside of a run, each desk in a sandbox of its own.
package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/pipeline/rollout"
	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// Desk is a session of tools outside of a run, in a sandbox of its own.
type Desk struct {
	Session *registry.Session
	Sandbox sandbox.Sandbox
	Images  *media.Store // nil where they are not shown
	own     *reward.Own  // for the checks of a task
	closers []func() error
}

// Options say what a desk has.
type Options struct {
	Toolsets  []string // that are enabled; none for all
	Workspace string   // folder that is copied in as the working directory
	Image     string
	Sites     []string
	Sees      bool          // results may have images
	Task      *episode.Task // whose sandbox it is; nil for none
	Skills    bool          // those that come along are there, unless the run file names others
	Warn      func(string)
}

// Selected are the tools that are enabled.
func (o Options) Selected(box *Toolbox) (*registry.Toolset, error) {
	enabled := o.Toolsets
	if len(enabled) == 0 {
		enabled = []string{"all"}
	}
	toolset, err := box.Registry.Select(enabled, nil)
	return toolset, run.AsMistake(err)
}

// Open opens a desk, whose sandbox has the id.
func (o Options) Open(ctx context.Context, box *Toolbox, id string, policy *tools.CommandPolicy) (_ *Desk, err error) {
	d := &Desk{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	toolset, err := o.Selected(box)
	if err != nil {
		return nil, err
	}
	var own []any
	var folder *sandbox.Folder
	if o.Skills || box.File.Skills.Given() {
		opened, err := box.Backend()
		if err != nil {
			return nil, run.AsMistake(err)
		}
		skills, err := run.CallSkills(box.File.Skills, opened.Guarantees(), toolset, o.Warn)
		if err != nil {
			return nil, run.AsMistake(err)
		}
		own, folder = []any{skills}, skills.Folder()
	}
	if err := d.openSandbox(ctx, o, box, id, folder); err != nil {
		return nil, err
	}
	var guard *registry.Guardrails
	if box.File.Tools.Guardrails != rollout.GuardOff {
		guard = registry.NewGuardrails()
	}
	backend, sites := func() (sandbox.Backend, error) { return box.Backend() }, o.Sites
	if o.Task != nil {
		sites = o.Task.Sites
	}
	services, closeServices, err := run.Services(ctx, &box.File, backend, id, sites)
	if err != nil {
		return nil, run.AsMistake(err)
	}
	d.closers = append(d.closers, closeServices)
	config := registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return d.Sandbox, nil },
		Hooks:   policy.Hook(), Guardrails: guard, Services: append(services, own...),
		Secrets: box.File.Secrets(box.Registry), Limits: box.File.Tools.Results(),
	}
	if o.Sees {
		d.Images = &media.Store{}
		config.Sees, config.Images = true, d.Images
		d.closers = append(d.closers, d.Images.Close)
	}
	d.Session = toolset.Session(config)
	d.closers = append(d.closers, func() error { d.Session.Close(); return nil })
	return d, nil
}

// Close ends the session, and then what it used.
func (d *Desk) Close() error {
	var errs []error
	for _, closer := range slices.Backward(d.closers) {
		errs = append(errs, closer())
	}
	d.closers = nil
	return errors.Join(errs...)
}

// openSandbox opens a sandbox with the workspace in it, like those of the run file when there is one.
func (d *Desk) openSandbox(ctx context.Context, o Options, box *Toolbox, id string, readOnly *sandbox.Folder) error {
	folder, err := readWorkspace(o.Workspace)
	if err != nil {
		return run.AsMistake(err)
	}
	backend, err := box.Backend()
	if err != nil {
		return run.AsMistake(err)
	}
	spec := sandbox.Spec{}
	if box.declared {
		spec = box.File.Sandbox.Spec()
	}
	if spec.Network != sandbox.NetworkAllowlist {
		spec.Allow = nil
	}
	spec.ID, spec.ReadOnly, spec.Image = id, readOnly, cmp.Or(o.Image, spec.Image)
	if o.Task != nil {
		spec = rollout.SpecOf(o.Task, spec)
		boxes := &rollout.Sandboxes{Backend: backend, Spec: spec, Verifier: run.VerifierOf(box.File.Sandbox.Verifier)}
		d.own = boxes.Own(o.Task, func() sandbox.Spec { return spec }, func(sb sandbox.Sandbox) { _ = sb.Close() })
	}
	if spec.Image != "" || box.declared || o.Task != nil {
		if err := backend.Offers(spec); err != nil {
			return run.AsMistake(err)
		}
	}
	sb, err := backend.Open(ctx, spec)
	if err != nil {
		return fmt.Errorf("open sandbox: %w", err)
	}
	d.Sandbox, d.closers = sb, append(d.closers, sb.Close)
	if err := folder.put(ctx, sb); err != nil {
		return fmt.Errorf("copy %s into the sandbox: %w", o.Workspace, err)
	}
	if o.Task != nil {
		return rollout.Furnish(ctx, o.Task, sb)
	}
	return nil
}
