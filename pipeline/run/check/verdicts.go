package check

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/proof"
	"trajgen/sandbox"
)

// The samples of a task are agents: its reference solution, one that does nothing, and the attacks.
const (
	gold = iota
	noop
	firstAttack
)

// verdicts is the journal of a proof. It keeps what fails, and what is known of tasks in play.
type verdicts struct {
	exp     *run.Experiment
	store   proof.Store
	chosen  *choice
	attacks []Attack
	sandbox sandbox.Guarantees

	mu    sync.Mutex // guards the fields below
	proof *Proof
	tasks map[string]*trial // in play
	spare map[string]bool   // ids of episodes that are not played
}

func newVerdicts(exp *run.Experiment, attacks []Attack, chosen *choice) *verdicts {
	g := exp.Backend.Guarantees()
	made := &Proof{Tasks: exp.Tasks, Sandbox: g, NoGold: []string{}, NoVerify: []string{}, Problems: []Problem{}}
	if chosen != nil {
		made.Tasks = chosen.tasks
	}
	if attacks != nil {
		made.Attacks = append(made.Attacks, Tally{Attack: Attack{Name: DoNothing, Does: "declines"}})
		made.Verdicts = []Verdict{}
	}
	for _, attack := range attacks {
		made.Attacks = append(made.Attacks, Tally{Attack: attack})
	}
	return &verdicts{exp: exp, store: exp.File.Play.Proofs(), chosen: chosen, attacks: attacks, sandbox: g, proof: made, tasks: map[string]*trial{}, spare: map[string]bool{}}
}

// agents is how many there are.
func (v *verdicts) agents() int { return firstAttack + len(v.attacks) }

// steps are what an agent does at a task, and whether it plays it.
func (v *verdicts) steps(agent int, t *trial) (steps []episode.Step, plays bool) {
	switch {
	case agent == gold:
		return nil, true // the survey taught it; it also shows whether the task can be set up
	case len(t.task.Verify) == 0:
		return nil, false
	case agent == noop:
		return []episode.Step{{Content: scripted.Declined}}, true
	}
	steps = v.attacks[agent-firstAttack].steps(t.task, t.hints, v.sandbox)
	return steps, steps != nil
}

// noting yields the tasks, teaches the agents what to do, and records what cannot be proven.
func (v *verdicts) noting(ctx context.Context) iter.Seq2[*episode.Task, error] {
	return func(yield func(*episode.Task, error) bool) {
		for task, err := range v.exp.Playable(v.exp.Source.InOrder(ctx)) {
			takes := true
			if err == nil {
				takes, err = v.note(task)
			}
			if err == nil && !takes {
				continue
			}
			if !yield(task, err) || err != nil {
				return
			}
		}
	}
}

// note says whether a task is chosen.
func (v *verdicts) note(task *episode.Task) (takes bool, err error) {
	digest, err := v.exp.ProofDigest(task)
	if err == nil {
		takes, err = v.chosen.takes(task, digest)
	}
	if err != nil || !takes {
		return false, err
	}
	t := &trial{task: task, digest: digest, played: make([]*play, v.agents())}
	if len(v.attacks) > 0 {
		t.hints = hintsOf(task)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(task.Gold) == 0 {
		v.proof.NoGold = append(v.proof.NoGold, task.ID)
	}
	if len(task.Verify) == 0 {
		v.proof.NoVerify = append(v.proof.NoVerify, task.ID)
	}
	v.tasks[task.ID] = t
	for agent := range t.played {
		id := episode.Key{Seed: v.exp.File.Seed, Task: task.ID, Sample: agent}.ID()
		steps, plays := v.steps(agent, t)
		if !plays {
			v.spare[id] = true
			continue
		}
		t.left++
		if steps != nil {
			v.exp.Scripted.Learn(&episode.Task{ID: id, Prompt: task.Prompt, Gold: steps})
		}
	}
	return true, nil
}

// Last says that an agent which does not play a task has played it.
func (v *verdicts) Last(id string) (pipeline.Record, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	spare := v.spare[id]
	delete(v.spare, id)
	return pipeline.Record{Outcome: episode.Failure}, spare
}

// look sees what an agent left at the names that the attacks know.
func (v *verdicts) look(ctx context.Context, ep *episode.Episode, sb sandbox.Sandbox) {
	if ep.Origin != nil {
		return
	}
	v.mu.Lock()
	t := v.tasks[ep.Key.Task]
	v.mu.Unlock()
	left := t.hints.look(ctx, sb)
	v.mu.Lock()
	defer v.mu.Unlock()
	t.played[ep.Key.Sample] = &play{files: left}
}

// Append keeps how an agent fared.
func (v *verdicts) Append(_ context.Context, ep *episode.Episode) error {
	if ep.Pending {
		return nil
	}
	v.exp.Scripted.Forget(ep.ID)
	if t := v.judged(ep); t != nil && len(t.task.Verify) > 0 {
		return v.store.Put(t.verdict.Proof)
	}
	return nil
}

// judged returns the task of an episode if that was its last, with the verdict.
func (v *verdicts) judged(ep *episode.Episode) *trial {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, agent := v.tasks[ep.Key.Task], ep.Key.Sample
	p := t.played[agent]
	if p == nil {
		p = &play{}
		t.played[agent] = p
	}
	p.ended(ep)
	if t.left--; t.left > 0 {
		return nil
	}
	delete(v.tasks, t.task.ID)
	v.conclude(t)
	return t
}

// conclude records what the plays of a task show. It is called with the lock held.
func (v *verdicts) conclude(t *trial) {
	var problems []Problem
	fails := func(policy string, p *play) {
		// A set-up fails in the same way for all.
		if p.outcome != episode.SandboxError || !slices.ContainsFunc(problems, func(other Problem) bool { return other.Detail == p.detail }) {
			problems = append(problems, Problem{Task: t.task.ID, Policy: policy, Outcome: p.outcome, Reward: p.reward, Detail: p.detail})
		}
	}
	judged := len(t.task.Verify) > 0
	if p := t.played[gold]; p.outcome == episode.SandboxError || judged && len(t.task.Gold) > 0 && !p.passed() {
		fails(scripted.Oracle, p)
	}
	if !judged {
		v.proof.Problems = append(v.proof.Problems, problems...)
		return
	}
	idle := t.played[noop]
	if idle.outcome == episode.SandboxError || idle.reward == nil || *idle.reward != 0 {
		fails(scripted.Noop, idle)
	}
	t.verdict = Verdict{Task: t.task.ID, Passed: []string{}, Proof: episode.Proof{Digest: t.digest, Noop: idle.reward}}
	verdict := &t.verdict
	if len(t.task.Gold) > 0 {
		verdict.Gold = t.played[gold].reward
	}
	for i, agent := range []string{"gold", "noop"} {
		if p := t.played[i]; p.outcome == episode.VerifierError && (i == noop || len(t.task.Gold) > 0) {
			if verdict.Faults == nil {
				verdict.Faults = map[string]string{}
			}
			verdict.Faults[agent] = p.class
		}
	}
	if v.attacks != nil {
		verdict.Attacks = map[string]*float64{}
		v.tally(0, idle.passed(), verdict)
	}
	for i, attack := range v.attacks {
		p := t.played[firstAttack+i]
		if p == nil || !attack.ahead && t.worked(p) {
			continue
		}
		verdict.Attacks[attack.Name] = p.reward
		passed := p.passed() && !idle.passed() // else it is not the attack that scores
		if v.tally(1+i, passed, verdict); passed {
			fails(attack.Name, p)
		}
	}
	v.proof.Problems = append(v.proof.Problems, problems...)
	if v.attacks != nil {
		v.proof.Verdicts = append(v.proof.Verdicts, *verdict)
	}
}

// tally counts an attack at a task.
func (v *verdicts) tally(attack int, passed bool, verdict *Verdict) {
	tally := &v.proof.Attacks[attack]
	if tally.Tried++; passed {
		tally.Passed++
		verdict.Passed = append(verdict.Passed, tally.Name)
	}
}

// proven is the proof, when all was played.
func (v *verdicts) proven() *Proof {
	v.mu.Lock()
	defer v.mu.Unlock()
	slices.SortStableFunc(v.proof.Problems, func(a, b Problem) int { return strings.Compare(a.Task, b.Task) })
	slices.SortFunc(v.proof.Verdicts, func(a, b Verdict) int { return strings.Compare(a.Task, b.Task) })
	return v.proof
}
