package reward

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
	"trajgen/sandbox/carry"
)

// Own says how commands get sandboxes of their own.
type Own struct {
	Spec    func() sandbox.Spec // of the episode's sandbox, once that is open
	Task    *episode.Task       // whose it is
	Forks   bool                // the backend can fork it
	Fixed   bool                // commands cannot change what belongs to the system, in the default image
	Default *episode.Verifier   // for checks that say nothing; nil is the zero value
	// Open opens a sandbox. Close ends it, and does not fail: what cannot be closed is the sweeper's.
	Open  func(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error)
	Close func(sb sandbox.Sandbox)
	// Build makes an image for verifiers that have a Dockerfile.
	Build func(ctx context.Context, from *episode.Build) (reference string, err error)
	// Before returns what look finds in a sandbox as the agent's was before the agent came. It need not look anew each time.
	Before func(ctx context.Context, look func(context.Context, sandbox.Sandbox) (Suspects, error)) (Suspects, error)
}

// ErrOpen means that a verifier got no sandbox of its own: this is the machine's fault, never the agent's.
var ErrOpen = errors.New("open the verifier's sandbox")

// of is where the command of a check runs.
func (o *Own) of(check episode.Check) episode.Verifier {
	return *cmp.Or(check.Verifier, o.Default, &episode.Verifier{})
}

// apart says whether the command of a check has a sandbox of its own.
func (o *Own) apart(check episode.Check) bool {
	if o == nil || check.Command == "" && check.Python == "" {
		return false
	}
	v := o.of(check)
	return v.Own() || o.Forks && v.Sandbox != episode.VerifierSame
}

// judge runs a check, in a sandbox of its own if it is to have one. Each check has one alone, so none meets what another left.
func (s Subject) judge(ctx context.Context, check episode.Check, verify verifier) (judgement, error) {
	if !s.Own.apart(check) {
		return verify(ctx, check, s)
	}
	if s.seal == nil {
		s.seal = &seal{}
		defer s.seal.close()
	}
	sb, err := s.open(ctx, check)
	switch {
	case errors.Is(err, carry.ErrFull):
		return judgement{detail: "what the agent left does not fit into the verifier's sandbox: " + err.Error()}, nil
	case err != nil:
		return judgement{}, err
	}
	defer s.Own.Close(sb)
	s.Sandbox = func(context.Context) (sandbox.Sandbox, error) { return sb, nil }
	return verify(ctx, check, s)
}

// open opens the sandbox for a check.
func (s Subject) open(ctx context.Context, check episode.Check) (sandbox.Sandbox, error) {
	agents, err := s.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	o, v := s.Own, s.Own.of(check)
	spec := o.Spec()
	spec.ID += "-verifier"
	if v.Network != "" {
		spec.Network, spec.Allow = sandbox.Network(v.Network), v.Allow
	}
	spec.Limits.Memory = cmp.Or(v.Memory, spec.Limits.Memory)
	spec.Limits.Disk = cmp.Or(v.Disk, spec.Limits.Disk)
	spec.Limits.CPUs = cmp.Or(v.CPUs, spec.Limits.CPUs)
	spec.Image, spec.Workdir = "", ""
	spec.Services, spec.Hosts = nil, nil // a fork reaches those of the agent's
	ready := func(sb sandbox.Sandbox) error { return o.cleanse(ctx, sb, v.Trust) }
	if v.Elsewhere() {
		spec.Env, spec.ReadOnly = nil, nil
		spec.Image, err = o.image(ctx, v)
		ready = func(sb sandbox.Sandbox) error { return furnish(ctx, agents, sb, v.Artifacts) }
	} else {
		spec.From, err = s.seal.of(ctx, agents)
	}
	var sb sandbox.Sandbox
	if err == nil {
		sb, err = o.Open(ctx, spec)
	}
	if err == nil {
		if err = ready(sb); err != nil {
			o.Close(sb)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOpen, err)
	}
	return sb, nil
}

// image is the one that a verifier names, or the one that is made for it.
func (o *Own) image(ctx context.Context, v episode.Verifier) (string, error) {
	if v.Build == nil {
		return v.Image, nil
	}
	return o.Build(ctx, v.Build)
}

// furnish copies what an agent left into the sandbox of a verifier. Relative paths are those of either working directory. What is
// not there is the verifier's to judge.
func furnish(ctx context.Context, agents, sb sandbox.Sandbox, artifacts []string) error {
	if err := agents.KillAll(ctx); err != nil {
		return fmt.Errorf("end the agent's processes: %w", err)
	}
	for _, name := range artifacts {
		if err := carry.Copy(ctx, agents, within(agents.Layout().Workdir, name), sb, within(sb.Layout().Workdir, name)); err != nil {
			return err
		}
	}
	return nil
}

// seal is the snapshot of what the agent left, once a check wants it.
type seal struct{ snapshot sandbox.Snapshot }

// of takes the snapshot. What the agent left running ends first.
func (s *seal) of(ctx context.Context, sb sandbox.Sandbox) (_ sandbox.Snapshot, err error) {
	if s.snapshot != nil {
		return s.snapshot, nil
	}
	forkable, ok := sb.(sandbox.Snapshotter)
	if !ok {
		return nil, errors.New("this backend cannot fork: say verifier: {sandbox: same}")
	}
	if err := sb.KillAll(ctx); err != nil {
		return nil, fmt.Errorf("end the agent's processes: %w", err)
	}
	s.snapshot, err = forkable.Snapshot(ctx)
	return s.snapshot, err
}

// close gives the snapshot up.
func (s *seal) close() {
	if s.snapshot != nil {
		_ = s.snapshot.Close() // dies with its backend, at the latest
	}
}
