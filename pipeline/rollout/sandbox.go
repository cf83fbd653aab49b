package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Sandboxes is where the sandboxes of episodes come from.
type Sandboxes struct {
	Backend sandbox.Backend
	Spec    sandbox.Spec // image, network and limits for tasks that name none
	Samples int          // plays of each task: from 2 on, a task's setup runs once for all of them where the backend can fork
	// Build makes the image of a task that has a Dockerfile, unless it is there, and returns a reference that Backend knows.
	Build func(ctx context.Context, from *episode.Build) (reference string, err error)
	// Verifier says where commands of checks run that say nothing of it, nor their task; nil is the zero value.
	Verifier *episode.Verifier
	Furnish  bool // sets up what a task wants of its sandbox, also where nothing needs that, to prove that it can be had

	prepared prepared
	before   befores
	// Guarantees are asked for once: thousands of episodes would each hold an answer of their own.
	once       sync.Once
	guarantees sandbox.Guarantees
}

// known are the guarantees of the backend.
func (s *Sandboxes) known() *sandbox.Guarantees {
	s.once.Do(func() { s.guarantees = s.Backend.Guarantees() })
	return &s.guarantees
}

// lazySandbox opens the episode's sandbox when something first needs it: an episode that touches none pays for none.
type lazySandbox struct {
	from   *Sandboxes
	now    func() time.Time
	logger *slog.Logger
	task   *episode.Task
	ep     *episode.Episode
	more   int64 // memory for tools, beside the task's
	// folder is what the episode has of its own, beside what all samples of the task have; nil is nothing.
	folder *sandbox.Folder

	// lock guards the rest, also while the sandbox is opened: calls of one turn may ask at once, and each waits no longer
	// than its context.
	lock  chan struct{}
	built map[*episode.Build]string // the images of the task's Dockerfiles
	sb    sandbox.Sandbox
	err   error
}

func newSandbox(a *attempt) *lazySandbox {
	g := a.Sandboxes.known()
	a.ep.Sandbox = episode.Sandbox{Backend: g.Backend, Level: string(g.Level), Limits: g.Limits}
	return &lazySandbox{from: &a.Sandboxes, now: a.Now, logger: a.logger, task: a.task, ep: a.ep, lock: make(chan struct{}, 1)}
}

// setupTimeout bounds the opening of a sandbox and the task's setup together.
const setupTimeout = 10 * time.Minute

// open returns the sandbox, with the task's files in it and its setup done. Once it has failed it fails for ever: half
// a set-up is not the task. Only what ctx cut short is tried again.
func (b *lazySandbox) open(ctx context.Context) (sandbox.Sandbox, error) {
	select {
	case b.lock <- struct{}{}:
		defer func() { <-b.lock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b.sb != nil || b.err != nil {
		return b.sb, b.err
	}
	var sb sandbox.Sandbox
	err := b.build(ctx)
	limited, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	if err == nil {
		sb, err = b.prepare(limited)
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b.sb, b.err = sb, err
	return sb, err
}

// build makes the images that the task has Dockerfiles of. It may take longer than a set-up does.
func (b *lazySandbox) build(ctx context.Context) error {
	began := b.now()
	for _, from := range b.task.Images() {
		image, err := b.from.Build(ctx, from)
		if err != nil {
			return faulty(episode.SandboxError, "build", err)
		}
		if b.built == nil {
			b.built = map[*episode.Build]string{}
		}
		b.built[from] = image
		b.ep.Phases.Open = b.now().Sub(began)
	}
	return nil
}

// isOpen says whether open has nothing to do any more.
func (b *lazySandbox) isOpen() bool {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	return b.sb != nil || b.err != nil
}

// fault returns why the sandbox could not be had, if that is so.
func (b *lazySandbox) fault() error {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	return b.err
}

// make opens a sandbox of its own for this sample and furnishes it.
func (b *lazySandbox) make(ctx context.Context) (sandbox.Sandbox, error) {
	sb, err := b.openSpec(ctx, b.spec())
	if err != nil {
		return nil, err
	}
	opened := b.now()
	err = Furnish(ctx, b.task, sb)
	b.ep.Phases.Setup = b.now().Sub(opened)
	if err != nil {
		return nil, errors.Join(err, sb.Close())
	}
	return sb, nil
}

func (b *lazySandbox) openSpec(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	began := b.now()
	sb, err := b.from.Backend.Open(ctx, spec)
	b.ep.Phases.Open += b.now().Sub(began)
	if err != nil {
		return nil, faulty(episode.SandboxError, "open", fmt.Errorf("open sandbox: %w", err))
	}
	b.ep.Sandbox.Opened = true
	return sb, nil
}

func (b *lazySandbox) spec() sandbox.Spec {
	spec := SpecOf(b.task, b.from.Spec)
	spec.ID = fmt.Sprintf("%s-%d", b.ep.ID, b.ep.Attempt)
	spec.ReadOnly = b.folder
	spec.Image = cmp.Or(b.built[b.task.Build], spec.Image)
	for i, s := range b.task.Services {
		spec.Services[i].Image = cmp.Or(b.built[s.Build], s.Image)
	}
	if spec.Limits.Memory > 0 {
		spec.Limits.Memory += b.more
	}
	return spec
}

// SpecOf is the sandbox that a task asks for, where it does not leave that to the run.
func SpecOf(task *episode.Task, spec sandbox.Spec) sandbox.Spec {
	spec.Workdir, spec.Env = task.Cwd, task.Env
	spec.Services, spec.Hosts = servicesOf(task), task.Hosts
	spec.Image = cmp.Or(task.Image, spec.Image)
	spec.Writable = spec.Writable || task.Root == sandbox.RootWritable
	spec.Network = cmp.Or(sandbox.Network(task.Network), spec.Network)
	want := task.Resources
	spec.Limits.Memory = cmp.Or(want.Memory, spec.Limits.Memory)
	spec.Limits.Disk = cmp.Or(want.Disk, spec.Limits.Disk)
	spec.Limits.CPUs = cmp.Or(want.CPUs, spec.Limits.CPUs)
	switch {
	case spec.Network != sandbox.NetworkAllowlist:
		spec.Allow = nil
	case len(task.Allow) > 0:
		spec.Allow = task.Allow
	}
	return spec
}

// Furnish puts a task's files in place in its sandbox, and runs its setup.
func Furnish(ctx context.Context, task *episode.Task, sb sandbox.Sandbox) error {
	writes := make([]sandbox.FileWrite, 0, len(task.Files))
	for _, path := range sortedPaths(task.Files) {
		writes = append(writes, sandbox.FileWrite{Path: path, Data: task.Files[path], Mode: fileMode(task.Files[path])})
	}
	if err := sb.Files().Write(ctx, writes...); err != nil {
		return faulty(episode.SandboxError, "files", fmt.Errorf("put the task's files in place: %w", err))
	}
	if task.Setup == "" {
		return nil
	}
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"bash", "-c", task.Setup}}, sandbox.RunOptions{Merge: true})
	switch {
	case err != nil:
		return faulty(episode.SandboxError, "setup", fmt.Errorf("run setup: %w", err))
	case result.TimedOut:
		return faulty(episode.SandboxError, "setup", fmt.Errorf("setup timed out: %s", outline(result.Stdout.Bytes())))
	case result.Exit.Code != 0:
		return faulty(episode.SandboxError, "setup", fmt.Errorf("setup ended with status %d: %s", result.Exit.Code, outline(result.Stdout.Bytes())))
	}
	return nil
}

// described is what a row says of the sandbox by now.
func (b *lazySandbox) described() episode.Sandbox {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	return b.ep.Sandbox
}

// lookTime bounds the look at the folder of an episode that has ended.
const lookTime = 30 * time.Second

// changed are the files of the folder that commands changed, where the sandbox could not prevent it.
func (b *lazySandbox) changed() []string {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	if b.sb == nil || b.folder == nil || b.from.known().FixedFolder {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	paths, err := b.folder.Changed(ctx, b.sb)
	if err != nil {
		b.logger.Warn("look for changed skills", "id", b.ep.ID, "error", err)
	}
	return paths
}

// close ends the sandbox. What cannot be closed is the sweeper's, not the episode's.
func (b *lazySandbox) close() {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	if b.sb == nil {
		return
	}
	began := b.now()
	b.end(b.sb)
	b.ep.Phases.Close = b.now().Sub(began)
}

// end closes a sandbox of the episode, and keeps what it reached. One sandbox of an episode is closed at a time.
func (b *lazySandbox) end(sb sandbox.Sandbox) {
	if traffic, ok := sb.(sandbox.Traffic); ok {
		b.ep.Sandbox.Connections = append(b.ep.Sandbox.Connections, connections(traffic)...)
	}
	if err := sb.Close(); err != nil {
		b.logger.Warn("sandbox did not close", "id", b.ep.ID, "error", err)
	}
}

// connections are what the row keeps of what was reached.
func connections(traffic sandbox.Traffic) []episode.Connection {
	var kept []episode.Connection
	for _, c := range traffic.Connections() {
		kept = append(kept, episode.Connection(c))
	}
	return kept
}

// fileMode makes scripts executable, as they are in the repository that a task's files came from.
func fileMode(data episode.File) fs.FileMode {
	if strings.HasPrefix(string(data[:min(2, len(data))]), "#!") {
		return 0o755
	}
	return 0o644
}

// outline is the end of what a setup printed, and the first line of it that speaks of an error: much may follow that.
func outline(output []byte) string {
	const most = 1000
	text := strings.TrimSpace(strings.ToValidUTF8(string(output), "\uFFFD"))
	if len(text) <= most {
		return text
	}
	cut := len(text) - most
	tail := "…" + strings.ToValidUTF8(text[cut:], "")
	for line := range strings.Lines(text[:cut]) {
		if speaksOfError.MatchString(line) {
			return strings.ToValidUTF8(strings.TrimSpace(line[:min(len(line), most/2)]), "") + "\n" + tail
		}
	}
	return tail
}

var speaksOfError = regexp.MustCompile(`(?i)\b(error|errors|fatal|failed|failure|cannot|unable|denied|not found|no such|traceback|exception|panic)\b`)

func sortedPaths(files episode.Files) []string { return slices.Sorted(maps.Keys(files)) }
