package sandbox

import (
	"errors"
	"fmt"
	"slices"
)

// RootWritable is the root file system of Spec.Writable, by its name in run files and tasks.
const RootWritable = "writable"

// Settings say where commands run, as in the run file.
type Settings struct {
	Backend   string            `yaml:"backend" flag:"sandbox" experiment:"always" help:"sandbox backend: native, local (no isolation, for trusted work), or another that trajgen doctor lists"`
	Settings  map[string]string `yaml:"settings,omitempty" flag:"sandbox-settings" experiment:"given" help:"what the backend wants to know, as NAME=VALUE; trajgen doctor lists the names"`
	Isolation string            `yaml:"isolation" experiment:"no" help:"least isolation level that the sandbox must reach: strong, user, landlock or none (default: landlock with native)"`
	Ready     int               `yaml:"ready" flag:"ready-sandboxes" experiment:"no" help:"sandboxes that are kept ready ahead of demand, of each kind"`
	Image     string            `yaml:"image" experiment:"always" help:"image of tasks that name none (default: the host's toolchain)"`
	ImageDir  string            `yaml:"image_dir" experiment:"no" help:"where images are unpacked to (default: this user's store)"`
	Root      string            `yaml:"root,omitempty" experiment:"given" help:"writable: commands can write everywhere in the root file system, also without an image"`
	// BuildNetwork is what commands of a Dockerfile reach: packages (or "", see build.Packages), full or none; with packages, also
	// the targets of BuildAllow. ImageMap names images that are taken instead of others.
	BuildNetwork string            `yaml:"build_network,omitempty" experiment:"given"`
	BuildAllow   []string          `yaml:"build_allow,omitempty" experiment:"given"`
	ImageMap     map[string]string `yaml:"image_map,omitempty" experiment:"given"`
	// Verifier is where commands of checks run; nil is a fork where the backend can.
	Verifier  *VerifierSettings `yaml:"verifier,omitempty" experiment:"given"`
	Network   string            `yaml:"network" experiment:"always" help:"network of tasks that name none: none, loopback, allowlist or full"`
	Allow     []string          `yaml:"allow,omitempty" experiment:"given" help:"targets of network allowlist: names (example.org, *.example.org), addresses or CIDR ranges, each with or without :PORT (default: 80 and 443)"`
	Memory    Size              `yaml:"memory" experiment:"always" help:"memory of one sandbox"`
	Processes int               `yaml:"processes" experiment:"always" help:"processes of one sandbox"`
	Disk      Size              `yaml:"disk" experiment:"always" help:"bytes that one sandbox can write"`
	Inodes    int               `yaml:"inodes" experiment:"given" help:"files that one sandbox can make (default: one for each 2K of disk)"`
	CPUs      float64           `yaml:"cpus" experiment:"given" help:"processors' worth of time of one sandbox, such as 0.5 (default: no limit)"`
}

// VerifierSettings say where the commands of checks run of which neither the check nor its task says it, in the words of a task's
// verifier.
type VerifierSettings struct {
	Sandbox string   `yaml:"sandbox,omitempty"`
	Network string   `yaml:"network,omitempty"`
	Allow   []string `yaml:"allow,omitempty"`
	Memory  Size     `yaml:"memory,omitempty"`
	Disk    Size     `yaml:"disk,omitempty"`
	CPUs    float64  `yaml:"cpus,omitempty"`
	Trust   []string `yaml:"trust,omitempty"`
}

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	problems := []error{CheckAllow(s.Allow), CheckAllow(s.BuildAllow)}
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.Inodes > 0 && s.Inodes < 256 {
		bad("inodes is %d; a sandbox needs at least 256", s.Inodes)
	}
	if s.Isolation != "" {
		if _, err := ParseLevel(s.Isolation); err != nil {
			problems = append(problems, err)
		}
	}
	if s.Root != "" && s.Root != RootWritable {
		bad("root is %q; want writable, or leave it out", s.Root)
	}
	if !slices.Contains([]string{"", "packages", "full", "none"}, s.BuildNetwork) {
		bad("build_network is %q; want packages, full or none", s.BuildNetwork)
	}
	if len(s.BuildAllow) > 0 && s.BuildNetwork != "" && s.BuildNetwork != "packages" {
		bad("build_allow goes with build_network: packages")
	}
	if s.Network == string(NetworkAllowlist) && len(s.Allow) == 0 {
		bad("network allowlist allows nothing: give --allow, such as --allow example.org")
	}
	if s.Memory > 0 && s.Memory < 16<<20 || s.Disk > 0 && s.Disk < 1<<20 || s.Processes > 0 && s.Processes < 8 {
		bad("a sandbox needs at least 16M of memory, 1M of disk and 8 processes, have %s, %s and %d", s.Memory, s.Disk, s.Processes)
	}
	return errors.Join(problems...)
}

// Spec is what those get that ask for nothing else.
func (s Settings) Spec() Spec {
	return Spec{Image: s.Image, Writable: s.Root == RootWritable, Network: Network(s.Network), Allow: s.Allow, Limits: s.Limits()}
}

// Limits are the limits of each sandbox.
func (s Settings) Limits() Limits {
	return Limits{Memory: int64(s.Memory), Processes: s.Processes, CPUs: s.CPUs, Disk: int64(s.Disk), Inodes: int64(s.Inodes)}
}
