package reward

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// ground is a directory with a verifier's home and start-up files, which the agent never saw.
type ground string

func groundOf(layout sandbox.Layout) ground { return ground(path.Join(layout.Tmp, ".verifier")) }

//go:embed ground
var grounds embed.FS

// make creates the directory anew. The agent can write to its parent, and can make the parent unwritable.
func (g ground) make(ctx context.Context, files sandbox.Files, said []sandbox.FileWrite) error {
	err := files.Remove(ctx, string(g))
	if err == nil {
		err = files.Write(ctx, append(g.files(), said...)...)
	}
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: %w", errInTheWay, err)
	}
	if err != nil {
		return fmt.Errorf("make a home for the verifier: %w", err)
	}
	return nil
}

func (g ground) files() []sandbox.FileWrite {
	var writes []sandbox.FileWrite
	for name, at := range map[string]string{"gitconfig": g.gitconfig(), "sitecustomize.py": g.startup() + "/sitecustomize.py", "bash_env": g.startup() + "/bash_env", "score.py": g.scoring(), "test_timeout.py": g.startup() + "/test_timeout.py"} {
		data, err := grounds.ReadFile("ground/" + name)
		if err != nil {
			panic(err) // the file is embedded
		}
		writes = append(writes, sandbox.FileWrite{Path: at, Data: data})
	}
	// Without this file, curl looks for one in the home directory of the list of users.
	return append(writes, sandbox.FileWrite{Path: g.home() + "/.curlrc"})
}

func (g ground) home() string      { return string(g) + "/home" }
func (g ground) startup() string   { return string(g) + "/startup" } // of programs
func (g ground) scoring() string   { return string(g) + "/score.py" }
func (g ground) lateTests() string { return string(g) + "/late_tests" }
func (g ground) gitconfig() string { return g.home() + "/.gitconfig" }

// environment is a verifier's environment, between the sandbox's own and that of its check. Its HOME has no files of the agent: no
// profile, no configuration, no module. A verifier whose command names the home directory is about the agent's files there, and
// gets the real one; a check may also set HOME itself.
func (g ground) environment(layout sandbox.Layout, check episode.Check) []string {
	env := []string{
		"TESTS=" + layout.Tests,
		"PYTHONDONTWRITEBYTECODE=1",
		"PYTHONNOUSERSITE=1",
		// These override the configuration of a repository, which the agent can write.
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/dev/null",
		"GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false",
	}
	if check.TestTimeout > 0 {
		env = append(env, fmt.Sprintf("TRAJGEN_TEST_TIMEOUT=%v", check.TestTimeout.Seconds()), "TRAJGEN_LATE_TESTS="+g.lateTests())
	}
	if _, named := check.Env["HOME"]; !named && !speaksOfHome.MatchString(check.Command) {
		env = append(env, "HOME="+g.home(), "GIT_CONFIG_GLOBAL="+g.gitconfig())
	}
	return env
}

// late says which tests took longer than the limit for each; "" for none.
func (g ground) late(ctx context.Context, files sandbox.Files) string {
	data, _, err := files.Read(ctx, g.lateTests(), 0, 2000)
	if err != nil { // the first test makes the file
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD"))
}

var speaksOfHome = regexp.MustCompile(`(^|[\s=:'"(<>|;&])~(/|\s|$)|\bHOME\b`)

// startups are variables that make programs read their start-up files from the ground.
func (g ground) startups() []string {
	return []string{"PYTHONPATH=" + g.startup(), "BASH_ENV=" + g.startup() + "/bash_env"}
}

// programs is where a check has programs of its own, which come before all others.
const programs = "/tests/bin/"

func bringsPrograms(check episode.Check) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(check.Tests)), func(name string) bool { return strings.HasPrefix(name, programs) })
}

// shell makes bash run a command with startups and the check's programs; values of the image or the task stay.
func (g ground) shell(command string) []string {
	const line = `[ ! -d "$TESTS/bin" ] || export PATH="$TESTS/bin:$PATH"; export PYTHONPATH="$0${PYTHONPATH:+:$PYTHONPATH}" BASH_ENV="${BASH_ENV:-$0/bash_env}"; exec "$@"`
	return []string{"sh", "-c", line, g.startup(), "bash", "-c", command}
}
