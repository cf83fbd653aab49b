package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"trajgen/sandbox"
	_ "trajgen/sandbox/internal/become" // for commands of an image that is built
	"trajgen/sandbox/internal/box"
	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/cgroup"
	"trajgen/sandbox/internal/mark"
	"trajgen/sandbox/internal/wire"
)

// closeTime bounds how long the backend waits for the end of a sandbox.
const closeTime = 30 * time.Second

var networks = []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback, sandbox.NetworkAllowlist, sandbox.NetworkFull}

// backend is the backend of namespaces and cgroups. It asks a broker to make guests, and then talks to the guests.
type backend struct {
	opts       options
	logger     *slog.Logger
	guarantees sandbox.Guarantees
	users      *userIDs
	single     error // why sandboxes have a single id

	mu     sync.Mutex
	broker *brokerClient // replaced when it has died
	boxes  map[*confined]bool
	ids    map[string]bool // in use
	closed bool
	pool   *pool

	watching sync.WaitGroup // brokers

	names atomic.Int64 // numbers for sandboxes and snapshots that the broker has to name
}

// options are the options of native: the common ones, and some for tests.
type options struct {
	sandbox.Options
	landlock bool          // does without namespaces
	cgroups  string        // forces a cgroup version
	patience time.Duration // how long a guest may leave requests unanswered
}

func (o options) box() box.Options { return box.Options{Patience: o.patience, Logger: o.Logger} }

func openPlain(opts sandbox.Options) (sandbox.Backend, error) { return open(options{Options: opts}) }

func open(opts options) (sandbox.Backend, error) {
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
	opts.Logger.Warn("no namespaces can be made here: sandboxes are no more than directories", "level", sandbox.LevelLandlock, "err", err)
	return l, nil
}

// openNamespaces falls back to a single id where it cannot have a range of them.
func openNamespaces(opts options) (sandbox.Backend, error) {
	if own := ownIDs(); own != nil {
		return openWith(opts, own, nil)
	}
	shared, err := sharedIDs()
	if err == nil {
		var n sandbox.Backend
		if n, err = openWith(opts, shared, nil); err == nil {
			return n, nil
		}
	}
	return openWith(opts, &userIDs{kind: broker.IDsSingle}, err)
}

func openWith(opts options, users *userIDs, single error) (sandbox.Backend, error) {
	n := &backend{opts: opts, logger: opts.Logger, users: users, single: single, boxes: map[*confined]bool{}, ids: map[string]bool{}}
	n.pool = newPool(n, opts.Pool)
	client, err := startBroker(opts, users)
	if err != nil {
		return nil, diagnose(err)
	}
	n.broker = client
	n.watchBroker(client)
	n.guarantees, err = n.selfTest(client.ready)
	if err != nil {
		return nil, errors.Join(diagnose(err), n.Close())
	}
	return n, nil
}

// Guarantees returns what the self-test found.
func (n *backend) Guarantees() sandbox.Guarantees { return n.guarantees }

// Open makes a sandbox, with a new broker when the old one has died, or hands out one from the pool.
func (n *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
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

// reserve keeps two sandboxes from having the same id at the same time.
func (n *backend) reserve(id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids[id] {
		return errors.New("it exists")
	}
	n.ids[id] = true
	return nil
}

func (n *backend) release(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ids, id)
}

func (n *backend) forget(b *confined) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.boxes, b)
}

// confined is a box whose guest the broker makes and can replace.
type confined struct {
	*box.Box
	backend *backend
	client  *brokerClient
	name    string // the broker's name for it
	plan    *plan
}

// End implements box.Owner.
func (b *confined) End() error {
	b.backend.forget(b)
	defer b.backend.release(b.plan.spec.ID)
	return b.client.close(b.name)
}

// open makes a sandbox under a name for the broker.
func (n *backend) open(ctx context.Context, p *plan, name string) (*confined, error) {
	client, err := n.client()
	if err != nil {
		return nil, err
	}
	l := p.spec.Limits
	request := broker.Open{
		ID: name, Workdir: p.layout.Workdir, Bare: p.spec.Bare, Host: p.image == nil && p.spec.Writable, Image: p.image != nil || p.spec.Writable, Layers: p.image, Network: box.GuestNetwork(p.spec.Network), Ports: likelyPorts(p.spec.Allow),
		Memory: l.Memory, Processes: int64(l.Processes), Disk: l.Disk, Inodes: l.Inodes, Files: int64(l.Files),
		CPU: int64(math.Ceil(l.CPUs * 1000)),
	}
	if f := p.spec.ReadOnly; f != nil {
		request.Folder, request.Digest = f.Name, f.Digest
		if err := client.keep(f); err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", p.spec.ID, err)
		}
	}
	if p.from != nil {
		if p.from.client != client {
			return nil, fmt.Errorf("open sandbox %s: the broker died, and its snapshots with it: %w", p.spec.ID, sandbox.ErrGone)
		}
		request.From = p.from.name
	}
	socket, err := client.guest(ctx, broker.KindOpen, func(e *wire.Encoder) { e.Add(&request) }, name)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", p.spec.ID, err)
	}
	b := &confined{backend: n, client: client, name: name, plan: p}
	if b.Box, err = box.New(b, p.spec, p.layout, socket, n.opts.box()); err != nil {
		return nil, errors.Join(err, client.close(name))
	}
	n.mu.Lock()
	closed := n.closed
	if !closed {
		n.boxes[b] = true
	}
	n.mu.Unlock()
	if closed {
		return nil, errors.Join(fmt.Errorf("open sandbox %s: backend is closed: %w", p.spec.ID, sandbox.ErrGone), b.Close())
	}
	return b, nil
}

func (n *backend) client() (*brokerClient, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fmt.Errorf("backend is closed: %w", sandbox.ErrGone)
	}
	if n.broker.dead() {
		n.logger.Error("the sandbox broker died and is started again", "said", n.broker.said())
		n.broker.stop()
		client, err := startBroker(n.opts, n.users)
		if err != nil {
			return nil, fmt.Errorf("start the broker again: %w", diagnose(err))
		}
		n.broker = client
		n.watchBroker(client)
	}
	return n.broker, nil
}

// watchBroker cleans up after a broker that is killed: its cgroups, and the records of its sandboxes.
func (n *backend) watchBroker(client *brokerClient) {
	n.watching.Go(func() {
		<-client.ended
		_ = client.stop() // the caller that ended the broker gets the error
		if !client.killed {
			return
		}
		if _, err := sandbox.Sweep(n.opts.StateDir); err != nil {
			n.logger.Warn("sweep after a dead broker", "err", err)
		}
	})
}

// Close ends all sandboxes and the broker.
func (n *backend) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.pool.stop()
	boxes := make([]*confined, 0, len(n.boxes))
	for b := range n.boxes {
		boxes = append(boxes, b)
	}
	n.mu.Unlock()
	// The broker ends all sandboxes at once; the boxes only have to note it.
	err := n.broker.stop()
	n.watching.Wait()
	for _, b := range boxes {
		err = errors.Join(err, b.Lost())
	}
	return err
}

// sweep ends what a dead broker left. Its guests died with it, unless it was killed a moment ago.
func sweep(_ context.Context, instance sandbox.Instance) error {
	var errs []error
	for _, dir := range instance.Cgroups {
		if strings.Contains(dir, "/trajgen-") {
			errs = append(errs, cgroup.Destroy(dir))
		}
	}
	if instance.Settings["level"] == string(sandbox.LevelLandlock) {
		errs = append(errs, mark.KillBelow(instance.Dir))
	}
	return errors.Join(errs...)
}

// diagnose adds what the user can do about an error.
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
