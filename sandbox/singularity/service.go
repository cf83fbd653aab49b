package singularity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/agent"
	"trajgen/sandbox/internal/state"
)

// Paths in an instance.
const (
	agentPath = "/.trajgen"
	homePath  = "/home/sandbox"
	testsPath = "/tests"
)

// service starts instances, whose names begin with its mark.
type service struct {
	*config
	mark   string
	dir    string // the backend's, for images, the agent and files of instances
	logger *slog.Logger
	count  atomic.Int64

	mu     sync.Mutex
	images map[string]*image
}

// image is fetched and examined on first use.
type image struct {
	turn sync.Mutex
	path string            // "" until it is fetched
	env  map[string]string // nil until it is examined
}

func newService(c *config, instance *state.Instance, logger *slog.Logger) (*service, error) {
	program, err := sandbox.Agent(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	s := &service{config: c, mark: instance.Name, dir: instance.Dir, logger: logger, images: map[string]*image{}}
	return s, os.WriteFile(s.agent(), program, 0o755)
}

func (s *service) agent() string { return filepath.Join(s.dir, "agent") }

// prefix returns how the names of all instances begin.
func (s *service) prefix() string { return "trajgen-" + s.mark + "-" }

// start starts an instance.
func (s *service) start(ctx context.Context, spec sandbox.Spec, img *image) (*machine, error) {
	if !path.IsAbs(spec.Workdir) || strings.ContainsAny(spec.Workdir, ",:\n") || path.Clean(spec.Workdir) == "/" {
		return nil, fmt.Errorf("workdir %q is not an absolute path that can be mounted at", spec.Workdir)
	}
	n := strconv.FormatInt(s.count.Add(1), 10)
	m := &machine{service: s, name: s.prefix() + n, dir: filepath.Join(s.dir, n), spec: spec}
	folder, err := spec.ReadOnly.Keep(s.dir)
	if err != nil {
		return nil, err
	}
	m.spec.ReadOnly = spec.ReadOnly.Mounted()
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := s.run(ctx, m.startArgs(img, folder)...); err != nil {
		if s.limits && strings.Contains(strings.ToLower(err.Error()), "cgroup") {
			err = fmt.Errorf("%w (where this machine lets users set no limits, the setting limits=none does without)", err)
		}
		return nil, errors.Join(fmt.Errorf("start an instance of %s: %w", img.path, err), m.clean(ctx))
	}
	if err := img.look(ctx, m); err != nil {
		return nil, errors.Join(err, m.clean(ctx))
	}
	m.spec.Env = map[string]string{}
	maps.Copy(m.spec.Env, img.env)
	maps.Copy(m.spec.Env, spec.Env)
	return m, nil
}

// clean ends an instance whose start failed.
func (m *machine) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return m.End(ctx)
}

// stopAll stops all instances of the mark.
func (s *service) stopAll(ctx context.Context) error {
	names, err := s.list(ctx)
	for _, name := range names {
		_, stopErr := s.run(ctx, "instance", "stop", "--force", name)
		err = errors.Join(err, stopErr)
	}
	return err
}

// clear removes the files of instances.
func (s *service) clear() error {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, state.RemoveTree(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// list returns the instances of the mark.
func (s *service) list(ctx context.Context) ([]string, error) {
	out, err := s.run(ctx, "instance", "list", "--json")
	if err != nil {
		return nil, err
	}
	var listing struct {
		Instances []struct {
			Instance string `json:"instance"`
		} `json:"instances"`
	}
	if err := json.Unmarshal(out, &listing); err != nil {
		return nil, fmt.Errorf("read the list of instances: %w", err)
	}
	var names []string
	for _, i := range listing.Instances {
		if strings.HasPrefix(i.Instance, s.prefix()) {
			names = append(names, i.Instance)
		}
	}
	return names, nil
}

// find fetches the image of a reference, once, as a file or directory.
func (s *service) find(ctx context.Context, reference string) (*image, error) {
	if reference == "" {
		reference = s.image
	}
	if reference == "" {
		return nil, errors.New("no image: neither the task nor the setting image names one")
	}
	s.mu.Lock()
	img := s.images[reference]
	if img == nil {
		img = &image{}
		s.images[reference] = img
	}
	s.mu.Unlock()
	img.turn.Lock()
	defer img.turn.Unlock()
	if img.path != "" {
		return img, nil
	}
	if strings.HasPrefix(reference, "-") {
		return nil, fmt.Errorf("image %q is none", reference)
	}
	if !strings.Contains(reference, "://") {
		found, err := filepath.Abs(reference)
		if err == nil {
			_, err = os.Stat(found)
		}
		if err == nil {
			img.path = found
			return img, nil
		}
		if strings.HasPrefix(reference, "/") || strings.HasPrefix(reference, ".") || strings.HasSuffix(reference, ".sif") {
			return nil, fmt.Errorf("image: %w", err)
		}
		reference = "docker://" + reference
	}
	sum := sha256.Sum256([]byte(reference))
	at := filepath.Join(s.dir, "image-"+hex.EncodeToString(sum[:8])+".sif")
	began := time.Now()
	s.logger.Info("fetch an image", "image", reference)
	if _, err := s.run(ctx, "pull", "--force", at, reference); err != nil {
		return nil, fmt.Errorf("fetch the image %s: %w", reference, err)
	}
	s.logger.Info("fetched an image", "image", reference, "elapsed", time.Since(began))
	img.path = at
	return img, nil
}

// run runs the program to its end.
func (s *service) run(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, s.program, args...)
	var stdout bytes.Buffer
	stderr := sandbox.NewCapture(2<<10, 6<<10)
	c.Env, c.Stdout, c.Stderr = environment(os.Environ()), &stdout, stderr
	// An instance that it started may hold the pipes.
	c.WaitDelay = time.Second
	err := c.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(s.program), strings.Join(args[:min(2, len(args))], " "), err, strings.TrimSpace(string(stderr.Bytes())))
	}
	return stdout.Bytes(), nil
}

// environment returns the variables of ours that the program needs. Others could give sandboxes directories of the host, or set
// variables in them.
func environment(ours []string) []string {
	var kept []string
	for _, kv := range ours {
		name, _, _ := strings.Cut(kv, "=")
		switch bare := strings.TrimPrefix(strings.TrimPrefix(name, "APPTAINER_"), "SINGULARITY_"); {
		case bare != name:
			switch bare {
			case "CACHEDIR", "TMPDIR", "CONFIGDIR", "CONFIG_FILE", "DOCKER_USERNAME", "DOCKER_PASSWORD", "DISABLE_CACHE", "LIBRARY":
				kept = append(kept, kv)
			}
		case strings.HasSuffix(strings.ToLower(name), "_proxy"), strings.HasPrefix(name, "XDG_"):
			kept = append(kept, kv)
		default:
			switch name {
			case "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "DBUS_SESSION_BUS_ADDRESS":
				kept = append(kept, kv)
			}
		}
	}
	return kept
}

// stopTime bounds how long an instance may take to end.
const stopTime = time.Minute

// machine is an instance.
type machine struct {
	service *service
	name    string
	dir     string
	spec    sandbox.Spec // for the agent
	agent   *agent.Process
}

// startArgs returns the arguments to start an instance with as little of the host as possible: the agent, and writable
// directories on disk.
func (m *machine) startArgs(img *image, folder string) []string {
	args := []string{
		"instance", "start", "--containall", "--cleanenv", "--no-home", "--no-mount", "hostfs,bind-paths", "--writable-tmpfs",
		"--hostname", "sandbox", "--bind", m.service.agent() + ":" + agentPath + ":ro",
		"--workdir", m.dir, "--scratch", m.spec.Workdir, "--scratch", homePath, "--scratch", testsPath,
	}
	if folder != "" {
		args = append(args, "--bind", folder+":/"+m.spec.ReadOnly.Name+":ro")
	}
	if m.spec.Network != sandbox.NetworkFull {
		args = append(args, "--net", "--network", "none")
	}
	if m.service.fakeroot {
		args = append(args, "--fakeroot")
	} else if os.Getuid() == 0 {
		// Otherwise root has all capabilities of the machine.
		args = append(args, "--no-privs", "--add-caps", "CAP_CHOWN,CAP_DAC_OVERRIDE,CAP_FOWNER,CAP_FSETID,CAP_KILL,CAP_SETGID,CAP_SETUID,CAP_NET_BIND_SERVICE")
	}
	if l := m.spec.Limits; m.service.limits {
		memory := strconv.FormatInt(l.Memory+agentMemory, 10)
		args = append(args, "--memory", memory, "--memory-swap", memory, "--pids-limit", strconv.Itoa(l.Processes+agentThreads))
		if l.CPUs > 0 {
			args = append(args, "--cpus", strconv.FormatFloat(l.CPUs, 'f', -1, 64))
		}
	}
	return append(args, img.path, m.name)
}

// What the agent and the instance's first process need beside the sandbox's limits.
const (
	agentMemory  = 64 << 20
	agentThreads = 48
)

func (m *machine) execArgs(args ...string) []string {
	return append([]string{"exec", "--cleanenv", "--pwd", "/", "instance://" + m.name}, args...)
}

// look reads the image's environment from an instance, once.
func (i *image) look(ctx context.Context, m *machine) error {
	i.turn.Lock()
	defer i.turn.Unlock()
	if i.env != nil {
		return nil
	}
	out, err := m.service.run(ctx, m.execArgs("/bin/cat", "/proc/self/environ")...)
	if err != nil {
		return fmt.Errorf("ask for the image's environment: %w", err)
	}
	i.env = agent.Environment(string(out), func(name, value string) bool {
		return strings.HasPrefix(name, "APPTAINER_") || strings.HasPrefix(name, "SINGULARITY_") ||
			name == "PROMPT_COMMAND" || name == "PS1" || name == "USER_PATH" || name == "LD_LIBRARY_PATH" && value == "/.singularity.d/libs"
	})
	return nil
}

// Start starts the agent in the instance.
func (m *machine) Start(context.Context) (io.ReadWriteCloser, error) {
	c := exec.Command(m.service.program, m.execArgs(agentPath, "trajgen-helper", "agent", "bare", "--workdir", m.spec.Workdir, "--home", homePath, "--tests", testsPath)...)
	c.Env = environment(os.Environ())
	var err error
	m.agent, err = agent.Start(c, stopTime, m.service.logger)
	return m.agent, err
}

// Spec implements agent.Machine.
func (m *machine) Spec() sandbox.Spec { return m.spec }

// End stops the instance.
func (m *machine) End(ctx context.Context) error {
	if _, err := m.service.run(ctx, "instance", "stop", "--force", m.name); err != nil {
		names, listErr := m.service.list(ctx)
		if listErr != nil || slices.Contains(names, m.name) {
			return errors.Join(err, listErr)
		}
	}
	if m.agent != nil {
		select {
		case <-m.agent.Ended():
		case <-time.After(time.Second):
			m.agent.Kill() // if it has outlived its instance
		}
	}
	return state.RemoveTree(m.dir)
}
