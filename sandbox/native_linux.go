package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/cgroup"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/state"
	"trajgen/sandbox/internal/wire"
)

// closeTime bounds how long the end of a sandbox is waited for.
const closeTime = 30 * time.Second

var nativeNetworks = []Network{NetworkNone, NetworkLoopback, NetworkAllowlist, NetworkFull}

func runRole(name string) {
	switch name {
	case broker.Name:
		broker.Main()
	case guest.Name:
		guest.Main()
	case guest.LandlockName:
		guest.LandlockMain()
	}
}

// keepDescriptors makes sure that what this program inherited is inherited no further.
func keepDescriptors() { _ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }

// native is the backend of namespaces and cgroups. It speaks to a broker, which makes guests, and to the guests.
type native struct {
	opts       Options
	logger     *slog.Logger
	guarantees Guarantees
	lent       *lent // nil when there is none, or no need of it
	unlent     error // why there is none

	mu     sync.Mutex
	broker *brokerClient // replaced when it died
	boxes  map[*box]bool
	ids    map[string]bool // in use
	closed bool
	pool   *pool

	names atomic.Int64 // of what has no name of its own
}

func openNative(opts Options) (Backend, error) {
	if opts.landlock {
		return openLandlock(opts, errors.New("turned off"))
	}
	n, err := openNamespaces(opts)
	if err == nil || !refused(err) {
		return n, err
	}
	l, landlockErr := openLandlock(opts, err)
	if landlockErr != nil {
		return nil, errors.Join(err, landlockErr)
	}
	opts.Logger.Warn("no namespaces can be made here: sandboxes are no more than directories", "level", LevelLandlock, "err", err)
	return l, nil
}

// openNamespaces does with a single id where a range of them cannot be had.
func openNamespaces(opts Options) (Backend, error) {
	if os.Getuid() == 0 {
		return openWith(opts, nil, nil)
	}
	lent, err := findLent()
	if err == nil {
		var n Backend
		if n, err = openWith(opts, lent, nil); err == nil {
			return n, nil
		}
	}
	return openWith(opts, nil, err)
}

func openWith(opts Options, lent *lent, unlent error) (Backend, error) {
	n := &native{opts: opts, logger: opts.Logger, lent: lent, unlent: unlent, boxes: map[*box]bool{}, ids: map[string]bool{}}
	n.pool = newPool(n, opts.Pool)
	client, err := startBroker(opts, lent)
	if err != nil {
		return nil, diagnose(err)
	}
	n.broker = client
	n.guarantees, err = n.selfTest(client.ready)
	if err != nil {
		return nil, errors.Join(diagnose(err), n.Close())
	}
	return n, nil
}

// Guarantees says what the self-test found.
func (n *native) Guarantees() Guarantees { return n.guarantees }

// Open makes a sandbox, with a new broker when the old one died, or hands out one that was made ahead.
func (n *native) Open(ctx context.Context, spec Spec) (Sandbox, error) {
	p, err := n.plan(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if err := n.reserve(p.spec.ID); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", p.spec.ID, err)
	}
	b := n.pool.take(p)
	if b == nil {
		b, err = n.open(ctx, p, p.spec.ID)
	}
	if err != nil {
		n.release(p.spec.ID)
		return nil, err
	}
	return b, nil
}

// plan is a sandbox to be, with everything settled.
type plan struct {
	spec   Spec
	layout Layout
	image  []string        // layers; nil is the toolchain
	from   *nativeSnapshot // nil is none
}

// plan checks a spec and finds what it names.
func (n *native) plan(ctx context.Context, spec Spec) (*plan, error) {
	spec, err := spec.complete(n.guarantees.Network, n.opts.Images != nil)
	if err != nil {
		return nil, err
	}
	p := &plan{spec: spec, layout: Layout{Home: "/root", Tmp: "/tmp", Tests: guest.Tests}}
	switch {
	case spec.From != nil:
		from, ok := spec.From.(*nativeSnapshot)
		if !ok || from.native != n {
			return nil, errors.New("the snapshot is of another backend")
		}
		p.from, p.layout.Workdir = from, from.workdir
		p.spec.Env = withDefaults(spec.Env, from.env)
	case spec.Image != "":
		err = n.planImage(ctx, p)
	default:
		p.layout.Workdir, err = nativeWorkdir(spec.Workdir)
	}
	return p, err
}

// planImage finds an image, and how it wants to be used.
func (n *native) planImage(ctx context.Context, p *plan) error {
	image, err := n.opts.Images.Find(ctx, p.spec.Image)
	if err != nil {
		return fmt.Errorf("image %s: %w", p.spec.Image, err)
	}
	if len(image.Layers) == 0 {
		return fmt.Errorf("image %s: it has no layers", p.spec.Image)
	}
	p.image = image.Layers
	env := map[string]string{}
	for _, kv := range image.Env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	p.spec.Env = withDefaults(p.spec.Env, env)
	p.layout.Workdir, err = imageWorkdir(cmp.Or(p.spec.Workdir, image.Workdir))
	return err
}

// withDefaults adds what is not there.
func withDefaults(values, defaults map[string]string) map[string]string {
	all := maps.Clone(defaults)
	if all == nil {
		return values
	}
	maps.Copy(all, values)
	return all
}

// reserve keeps two sandboxes from having one id at a time.
func (n *native) reserve(id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids[id] {
		return errors.New("it exists")
	}
	n.ids[id] = true
	return nil
}

func (n *native) release(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ids, id)
}

// open makes a sandbox that the broker knows by a name.
func (n *native) open(ctx context.Context, p *plan, name string) (*nativeBox, error) {
	client, err := n.client()
	if err != nil {
		return nil, err
	}
	l := p.spec.Limits
	request := broker.Open{
		ID: name, Workdir: p.layout.Workdir, Image: p.image != nil, Layers: p.image, Network: guestNetwork(p.spec.Network), Ports: likelyPorts(p.spec.Allow),
		Memory: l.Memory, Processes: int64(l.Processes), Disk: l.Disk, Inodes: l.Inodes, Files: int64(l.Files),
		CPU: int64(math.Ceil(l.CPUs * 1000)),
	}
	if p.from != nil {
		if p.from.client != client {
			return nil, fmt.Errorf("open sandbox %s: the broker died, and its snapshots with it: %w", p.spec.ID, ErrGone)
		}
		request.From = p.from.name
	}
	socket, err := client.guest(ctx, broker.KindOpen, request.Encode, name)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", p.spec.ID, err)
	}
	inner, err := newBox(n, client, p.spec, p.layout, socket)
	if err != nil {
		return nil, errors.Join(err, client.close(name))
	}
	b := &nativeBox{box: inner, native: n}
	b.name = name
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.Join(fmt.Errorf("open sandbox %s: backend is closed: %w", p.spec.ID, ErrGone), b.end())
	}
	n.boxes[inner] = true
	return b, nil
}

// imageWorkdir is a place that is not taken.
func imageWorkdir(dir string) (string, error) {
	if dir == "" || dir == "/" {
		return "/workspace", nil
	}
	if !path.IsAbs(dir) {
		return "", fmt.Errorf("workdir %q is not absolute", dir)
	}
	dir = path.Clean(dir)
	top, _, _ := strings.Cut(dir[1:], "/")
	switch top {
	case "", "dev", "proc", guest.Program[1:], guest.Tests[1:]:
		return "", fmt.Errorf("workdir %q is no place for work", dir)
	}
	return dir, nil
}

// nativeWorkdir refuses what would be writable, as the working directory is, and must not be: a verifier is run with
// the programs and the configuration there.
func nativeWorkdir(dir string) (string, error) {
	if dir == "" {
		return "/workspace", nil
	}
	if !path.IsAbs(dir) {
		return "", fmt.Errorf("workdir %q is not absolute", dir)
	}
	dir = path.Clean(dir)
	top, _, _ := strings.Cut(dir[1:], "/")
	switch top {
	case "", "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "usr", guest.Program[1:], guest.Tests[1:]:
		return "", fmt.Errorf("workdir %q is no place for work (as are /workspace, /home/..., /srv/... or a directory of its own)", dir)
	}
	return dir, nil
}

func (n *native) client() (*brokerClient, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fmt.Errorf("backend is closed: %w", ErrGone)
	}
	if n.broker.dead() {
		n.logger.Error("the sandbox broker died and is started again", "said", n.broker.said())
		n.broker.stop()
		client, err := startBroker(n.opts, n.lent)
		if err != nil {
			return nil, fmt.Errorf("start the broker again: %w", diagnose(err))
		}
		n.broker = client
		if _, err := Sweep(n.opts.StateDir); err != nil {
			n.logger.Warn("sweep after a dead broker", "err", err)
		}
	}
	return n.broker, nil
}

// Close ends all sandboxes and the broker.
func (n *native) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.pool.stop()
	boxes := make([]*box, 0, len(n.boxes))
	for b := range n.boxes {
		boxes = append(boxes, b)
	}
	n.mu.Unlock()
	// The broker ends all at once; the boxes only have to hear of it.
	err := n.broker.stop()
	for _, b := range boxes {
		b.lost()
		err = errors.Join(err, b.stopCarrying())
	}
	return err
}

// brokerClient is the runner's side of one broker process.
type brokerClient struct {
	conn    *wire.Conn
	process *os.Process
	ready   broker.Ready
	stderr  *Capture
	ended   chan struct{} // closed when the socket has

	sending sync.Mutex
	mu      sync.Mutex
	next    int64
	waiting map[int64]chan brokerAnswer
	stopped sync.Once
	stopErr error
}

type brokerAnswer struct {
	err error
	fds []int
}

// brokerEnv keeps the broker's heap small: each sandbox is forked from it, and each fork copies the page tables.
var brokerEnv = []string{"GOTRACEBACK=single", "GOGC=20"}

// startBroker runs the broker, this program or the small one in it, in a mount namespace of its own; as an ordinary
// user, also in a user namespace, which gives the right to make one.
func startBroker(opts Options, lent *lent) (*brokerClient, error) {
	ours, theirs, err := wire.Pair()
	if err != nil {
		return nil, err
	}
	// Ours would keep the socket from ending with the broker.
	child := os.NewFile(uintptr(theirs), "broker socket")
	defer child.Close()
	errors, stderr, err := os.Pipe()
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	defer stderr.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	defer null.Close()
	programs, err := openPrograms()
	defer programs.close()
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	process, err := os.StartProcess("/proc/self/fd/"+strconv.Itoa(int(programs.broker.Fd())), []string{broker.Name}, &os.ProcAttr{
		Dir: "/", Env: brokerEnv,
		Files: []*os.File{null, null, stderr, child, programs.helper},
		Sys:   lent.separate(),
	})
	if err == nil {
		if err = lent.lend(process.Pid); err != nil {
			_ = process.Kill()
			_, _ = process.Wait()
		}
	}
	if err != nil {
		unix.Close(ours)
		errors.Close()
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	c := &brokerClient{process: process, stderr: NewCapture(8<<10, 8<<10), ended: make(chan struct{}), waiting: map[int64]chan brokerAnswer{}}
	go func() {
		_, _ = io.Copy(c.stderr, errors)
		errors.Close()
	}()
	if c.conn, err = wire.Polled(ours); err != nil {
		return nil, err
	}
	if err := c.greet(opts, lent.ids(), programs.guests); err != nil {
		close(c.ended)
		return nil, joinErrors(err, c.stop())
	}
	go c.receive()
	return c, nil
}

func (c *brokerClient) greet(opts Options, ids int64, guests bool) error {
	config := broker.Config{StateDir: opts.StateDir, Owner: os.Getpid(), HostPaths: opts.HostPaths, Cgroups: opts.cgroups, IDs: ids, Guests: guests}
	if opts.Images != nil {
		config.Images = opts.Images.Dir()
	}
	if config.Cgroups == "" {
		config.Cgroups = "auto"
	}
	var e wire.Encoder
	config.Encode(&e)
	if err := c.conn.Send(e.Bytes); err != nil {
		return fmt.Errorf("greet the broker: %w", err)
	}
	message, fds, err := c.conn.Recv()
	wire.CloseAll(fds)
	if err != nil {
		_, _ = c.process.Wait()
		return fmt.Errorf("the broker died at once (is sandbox.Init the first call of main?): %w; it said %q", err, c.said())
	}
	d := wire.NewDecoder(message)
	c.ready.Decode(d)
	if d.Err() != nil {
		return d.Err()
	}
	if c.ready.Err != "" {
		return errors.New(c.ready.Err)
	}
	return nil
}

func (c *brokerClient) said() string { return strings.TrimSpace(string(c.stderr.Bytes())) }

func (c *brokerClient) dead() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *brokerClient) receive() {
	defer close(c.ended)
	for {
		message, fds, err := c.conn.Recv()
		if err != nil {
			return
		}
		d := wire.NewDecoder(message)
		id, text := d.Int(), d.String()
		c.mu.Lock()
		waiting := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if waiting == nil {
			wire.CloseAll(fds)
			continue
		}
		answer := brokerAnswer{fds: fds}
		if text != "" {
			answer.err = errors.New(text)
		}
		waiting <- answer
	}
}

// ask sends a request; the answer comes on the channel, which has room for it.
func (c *brokerClient) ask(kind int64, body func(*wire.Encoder)) (chan brokerAnswer, error) {
	answer := make(chan brokerAnswer, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = answer
	c.mu.Unlock()
	var e wire.Encoder
	e.Int(kind)
	e.Int(id)
	body(&e)
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.conn.Send(e.Bytes); err != nil {
		return nil, fmt.Errorf("the broker is gone (%w): %w", err, ErrGone)
	}
	return answer, nil
}

// guest asks for something that is answered with the socket of a new guest. When ctx ends first, the sandbox of that name is
// closed.
func (c *brokerClient) guest(ctx context.Context, kind int64, body func(*wire.Encoder), name string) (socket int, err error) {
	answer, err := c.ask(kind, body)
	if err != nil {
		return -1, err
	}
	select {
	case a := <-answer:
		if a.err != nil || len(a.fds) != 1 {
			wire.CloseAll(a.fds)
			return -1, joinErrors(a.err)
		}
		return a.fds[0], nil
	case <-c.ended:
		return -1, fmt.Errorf("the broker died: %w", ErrGone)
	case <-ctx.Done():
		go func() {
			select {
			case a := <-answer:
				wire.CloseAll(a.fds)
				if a.err == nil {
					_ = c.close(name)
				}
			case <-c.ended:
			}
		}()
		return -1, context.Cause(ctx)
	}
}

// close ends a sandbox. With a dead broker the guest is dead as well.
func (c *brokerClient) close(id string) error {
	answer, err := c.ask(broker.KindClose, func(e *wire.Encoder) { e.String(id) })
	if err != nil {
		return nil
	}
	select {
	case a := <-answer:
		wire.CloseAll(a.fds)
		return a.err
	case <-c.ended:
		return nil
	case <-time.After(closeTime):
		return fmt.Errorf("close sandbox %s: no answer from the broker in %v", id, closeTime)
	}
}

// tell asks for something that is answered with nothing. With a dead broker, all is gone that could be told of.
func (c *brokerClient) tell(kind int64, body func(*wire.Encoder)) error {
	answer, err := c.ask(kind, body)
	if err != nil {
		return nil
	}
	select {
	case a := <-answer:
		wire.CloseAll(a.fds)
		return a.err
	case <-c.ended:
		return nil
	}
}

// stop ends the broker by closing its socket and waits until it has cleaned up.
func (c *brokerClient) stop() error {
	c.stopped.Do(func() {
		_ = c.conn.Close()
		timer := time.AfterFunc(closeTime, func() { _ = c.process.Kill() })
		defer timer.Stop()
		status, err := c.process.Wait()
		if errors.Is(err, syscall.ECHILD) || errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		if err == nil && status != nil && status.ExitCode() == 1 {
			err = fmt.Errorf("broker: %s", c.said())
		}
		c.stopErr = err
	})
	return c.stopErr
}

func joinErrors(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.New("malformed answer")
}

// removeInstance ends what a dead broker left. Its guests died with it, unless it was killed a moment ago.
func removeInstance(path string, owner state.Owner) error {
	var errs []error
	for _, dir := range owner.Cgroups {
		if strings.Contains(dir, "/trajgen-") {
			errs = append(errs, cgroup.Destroy(dir))
		}
	}
	if owner.Backend == "local" || owner.Settings["level"] == string(LevelLandlock) {
		errs = append(errs, killMarked(path))
	}
	return errors.Join(errs...)
}

// diagnose adds what a person can do about it.
func diagnose(err error) error {
	read := func(name string) (int, bool) {
		content, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			return 0, false
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(content)))
		return n, err == nil
	}
	const local = "or choose the local backend for trusted work"
	if n, ok := read("user/max_user_namespaces"); ok && n == 0 {
		return fmt.Errorf("user namespaces are disabled: sysctl user.max_user_namespaces=15000, %s: %w", local, err)
	}
	if n, ok := read("kernel/unprivileged_userns_clone"); ok && n == 0 && os.Getuid() != 0 {
		return fmt.Errorf("user namespaces are disabled for ordinary users: sysctl kernel.unprivileged_userns_clone=1, %s: %w", local, err)
	}
	if n, ok := read("kernel/apparmor_restrict_unprivileged_userns"); ok && n == 1 && os.Getuid() != 0 {
		return fmt.Errorf("AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0, %s: %w", local, err)
	}
	if errors.Is(err, syscall.EPERM) || strings.Contains(err.Error(), "operation not permitted") {
		return fmt.Errorf("this machine does not let us make namespaces (in docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined), %s: %w", local, err)
	}
	return err
}
