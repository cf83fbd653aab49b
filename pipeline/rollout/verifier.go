package rollout

import (
	"cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
)

// Own says how the checks of a task get sandboxes of their own, with all that the episode's sandbox has, which was opened as spec
// says.
func (s *Sandboxes) Own(task *episode.Task, spec sandbox.Spec, end func(sandbox.Sandbox)) *reward.Own {
	g := s.known()
	return &reward.Own{
		Spec: spec, Forks: g.Snapshots, Default: cmp.Or(task.Verifier, s.Verifier), Open: s.Backend.Open, Close: end,
	}
}
