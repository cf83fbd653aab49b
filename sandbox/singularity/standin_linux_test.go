package singularity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// Main is a stand-in for the program apptainer, where that cannot be installed. It takes the arguments that Apptainer 1.1 takes,
// and no others, and makes instances of the same namespaces, of an ordinary user's as of root's. It returns unless this program
// was started under the name apptainer. TestMain calls it.
func Main() {
	if filepath.Base(os.Args[0]) != "apptainer" {
		return
	}
	err := run(filepath.Dir(os.Args[0]), os.Args[1:])
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FATAL:  ", err)
		os.Exit(255)
	}
	os.Exit(0)
}

// run runs a command. dir is where the program lies, with what it remembers.
func run(dir string, args []string) error {
	if err := record(dir, args); err != nil {
		return err
	}
	take := func(names ...string) bool {
		for i, name := range names {
			if i >= len(args) || args[i] != name {
				return false
			}
		}
		args = args[len(names):]
		return true
	}
	switch {
	case take("instance", "start"):
		return start(dir, args)
	case take("instance", "stop"):
		return stop(dir, args)
	case take("instance", "list"):
		return list(dir, args)
	case take("exec"):
		return enter(dir, args)
	case take("pull"):
		return pull(dir, args)
	case take("standin-init"):
		return boot(args[0])
	}
	return fmt.Errorf("unknown command %q", args)
}

// record keeps a line of each call.
func record(dir string, args []string) error {
	file, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, strings.Join(args, " "))
	return errors.Join(err, file.Close())
}

// instance is what is remembered of one.
type instance struct {
	Name  string
	PID   int
	Image string
	Box   *box
}

func instanceFile(dir, name string) string { return filepath.Join(dir, "instances", name+".json") }

func readInstance(dir, name string) (*instance, error) {
	content, err := os.ReadFile(instanceFile(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no instance found with name %s", name)
	}
	if err != nil {
		return nil, err
	}
	i := &instance{}
	if err := json.Unmarshal(content, i); err != nil {
		return nil, err
	}
	if !alive(i.PID) {
		_ = os.Remove(instanceFile(dir, name))
		return nil, fmt.Errorf("no instance found with name %s", name)
	}
	return i, nil
}

// alive says whether a process is there and more than a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// flags are those of the commands that run something.
func flags(name string, b *box) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetInterspersed(false)
	f.BoolVarP(&b.ContainAll, "containall", "C", false, "")
	f.BoolVarP(&b.CleanEnv, "cleanenv", "e", false, "")
	f.BoolVar(&b.NoHome, "no-home", false, "")
	f.StringSliceVar(&b.NoMount, "no-mount", nil, "")
	f.BoolVar(&b.WritableTmpfs, "writable-tmpfs", false, "")
	f.StringVar(&b.Hostname, "hostname", "", "")
	f.StringArrayVarP(&b.Binds, "bind", "B", nil, "")
	f.StringVarP(&b.Workdir, "workdir", "W", "", "")
	f.StringSliceVarP(&b.Scratch, "scratch", "S", nil, "")
	f.BoolVarP(&b.Net, "net", "n", false, "")
	f.StringVar(&b.Network, "network", "", "")
	f.BoolVarP(&b.Fakeroot, "fakeroot", "f", false, "")
	f.BoolVar(&b.NoPrivs, "no-privs", false, "")
	f.StringVar(&b.AddCaps, "add-caps", "", "")
	f.StringVar(&b.Memory, "memory", "", "")
	f.StringVar(&b.MemorySwap, "memory-swap", "", "")
	f.IntVar(&b.PIDs, "pids-limit", 0, "")
	f.StringVar(&b.CPUs, "cpus", "", "")
	return f
}

var instanceName = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)

func start(dir string, args []string) error {
	b := &box{}
	f := flags("instance start", b)
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 2 {
		return fmt.Errorf("instance start takes an image and a name, got %q", f.Args())
	}
	name := f.Arg(1)
	if _, err := readInstance(dir, name); err == nil {
		return fmt.Errorf("instance %s already exists", name)
	}
	if !instanceName.MatchString(name) {
		return fmt.Errorf("invalid instance name %q", name)
	}
	if err := b.check(); err != nil {
		return err
	}
	var err error
	if b.Image, err = resolve(f.Arg(0)); err != nil {
		return err
	}
	i := &instance{Name: name, Image: f.Arg(0), Box: b}
	if i.PID, err = b.start(); err != nil {
		return err
	}
	content, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "instances"), 0o700); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "INFO:    instance started successfully")
	return os.WriteFile(instanceFile(dir, name), content, 0o600)
}

// resolve returns the directory of an image: what was pulled is a file that names one.
func resolve(image string) (string, error) {
	info, err := os.Stat(image)
	if err != nil {
		return "", fmt.Errorf("could not open image %s: %w", image, err)
	}
	if info.IsDir() {
		return image, nil
	}
	content, err := os.ReadFile(image)
	return string(content), err
}

func stop(dir string, args []string) error {
	f := pflag.NewFlagSet("instance stop", pflag.ContinueOnError)
	force := f.BoolP("force", "F", false, "")
	f.StringP("signal", "s", "", "")
	f.IntP("timeout", "t", 10, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 || !*force {
		return fmt.Errorf("instance stop takes a name, got %q", args)
	}
	i, err := readInstance(dir, f.Arg(0))
	if err != nil {
		return err
	}
	for end := time.Now().Add(10 * time.Second); alive(i.PID); time.Sleep(2 * time.Millisecond) {
		_ = syscall.Kill(i.PID, syscall.SIGKILL)
		if time.Now().After(end) {
			return fmt.Errorf("instance %s could not be killed", i.Name)
		}
	}
	return os.Remove(instanceFile(dir, i.Name))
}

func list(dir string, args []string) error {
	f := pflag.NewFlagSet("instance list", pflag.ContinueOnError)
	structured := f.BoolP("json", "j", false, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	if !*structured || f.NArg() > 0 {
		return fmt.Errorf("not asked of the stand-in: instance list %q", args)
	}
	type entry struct {
		Instance string `json:"instance"`
		PID      int    `json:"pid"`
		Image    string `json:"img"`
		IP       string `json:"ip"`
	}
	entries := []entry{}
	names, _ := filepath.Glob(instanceFile(dir, "*"))
	for _, file := range names {
		if i, err := readInstance(dir, strings.TrimSuffix(filepath.Base(file), ".json")); err == nil {
			entries = append(entries, entry{Instance: i.Name, PID: i.PID, Image: i.Image})
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"instances": entries})
}

func pull(dir string, args []string) error {
	f := pflag.NewFlagSet("pull", pflag.ContinueOnError)
	force := f.BoolP("force", "F", false, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 2 {
		return fmt.Errorf("pull takes a file and a reference, got %q", f.Args())
	}
	if _, err := os.Stat(f.Arg(0)); err == nil && !*force {
		return fmt.Errorf("image file already exists: %q - will not overwrite", f.Arg(0))
	}
	name, ok := strings.CutPrefix(f.Arg(1), "docker://")
	image := filepath.Join(dir, "registry", name)
	if _, err := os.Stat(image); !ok || err != nil {
		return fmt.Errorf("while making image from oci registry: %s: manifest unknown", f.Arg(1))
	}
	time.Sleep(50 * time.Millisecond) // for others to come
	return os.WriteFile(f.Arg(0), []byte(image), 0o600)
}

// check refuses what the real one would, and what leaves more of the host in the sandbox than is meant.
func (b *box) check() error {
	switch {
	case !b.ContainAll || !b.CleanEnv || !b.NoHome || !b.WritableTmpfs:
		return errors.New("not contained")
	case b.Network != "" && !b.Net:
		return errors.New("--network without --net")
	case b.Net && b.Network != "none":
		return fmt.Errorf("network requires root or --fakeroot, users need to specify --network=none with --net, got %q", b.Network)
	case os.Getuid() == 0 && !b.NoPrivs && !b.Fakeroot:
		return errors.New("root keeps its capabilities")
	case b.Workdir == "" || len(b.Scratch) == 0:
		return errors.New("no place to write")
	}
	for _, m := range b.NoMount {
		if m != "hostfs" && m != "bind-paths" {
			return fmt.Errorf("unknown mount %q", m)
		}
	}
	for _, text := range []string{b.Memory, b.MemorySwap} {
		if n, err := strconv.ParseInt(text, 10, 64); text != "" && (err != nil || n < 1<<20) {
			return fmt.Errorf("bad amount of memory %q", text)
		}
	}
	if n, err := strconv.ParseFloat(b.CPUs, 64); b.CPUs != "" && (err != nil || n <= 0) {
		return fmt.Errorf("bad number of processors %q", b.CPUs)
	}
	for _, name := range strings.Split(b.AddCaps, ",") {
		if _, ok := capabilities[name]; name != "" && !ok {
			return fmt.Errorf("unknown capability %q", name)
		}
	}
	return nil
}

var capabilities = map[string]uintptr{
	"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_FOWNER": unix.CAP_FOWNER, "CAP_FSETID": unix.CAP_FSETID,
	"CAP_KILL": unix.CAP_KILL, "CAP_SETGID": unix.CAP_SETGID, "CAP_SETUID": unix.CAP_SETUID, "CAP_NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE,
}
