package check

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// trial is a task in play.
type trial struct {
	task   *episode.Task
	digest string
	hints  hints
	left   int     // agents that are still to play
	played []*play // by agent; nil for one that does not play

	verdict Verdict
}

// play is what an agent made of a task.
type play struct {
	outcome episode.Outcome
	class   string // of its fault
	reward  *float64
	detail  string
	files   map[string]string // what it left at the hinted names
}

func (p *play) passed() bool { return p != nil && p.reward != nil && *p.reward >= episode.SuccessAt }

// ended takes how the play ended.
func (p *play) ended(ep *episode.Episode) {
	p.outcome, p.reward, p.detail = ep.Outcome, ep.Reward, detail(ep)
	if ep.Fault != nil {
		p.class = ep.Fault.Class
	}
}

// detail says why an episode ended as it did.
func detail(ep *episode.Episode) string {
	if ep.Fault != nil {
		return ep.Fault.Class + ": " + ep.Fault.Message
	}
	for _, reward := range ep.Rewards {
		if reward.Value < 1 {
			return reward.Name + ": " + reward.Detail
		}
	}
	return string(ep.Stop)
}

// worked says whether an agent left what the reference solution leaves: then it did the work, and did not cheat.
func (t *trial) worked(p *play) bool {
	if !t.played[gold].passed() {
		return false
	}
	work := false
	for _, name := range t.hints.names {
		if done := t.played[gold].files[name]; done != t.played[noop].files[name] {
			if p.files[name] != done {
				return false
			}
			work = true
		}
	}
	return work
}

// look says what lies at the hinted names.
func (h hints) look(ctx context.Context, sb sandbox.Sandbox) map[string]string {
	const most = 1 << 20 // bytes of a file
	left := map[string]string{}
	for _, name := range h.names {
		at := name
		if rest, home := strings.CutPrefix(name, "~/"); home {
			at = path.Join(sb.Layout().Home, rest)
		}
		if data, info, err := sb.Files().Read(ctx, at, 0, most); err == nil {
			left[name] = fmt.Sprintf("%d %x", info.Size, sha256.Sum256(data))
		} else if info, err := sb.Files().Stat(ctx, at); err == nil {
			left[name] = info.Mode.Type().String()
		}
	}
	return left
}
