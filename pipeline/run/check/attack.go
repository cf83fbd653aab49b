package check

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/where/nearest"
	"trajgen/sandbox"
)

// Attack is an agent that wants a task's reward without the work.
type Attack struct {
	Name string `json:"name"`
	Does string `json:"does"`

	answer string // instead of Done.
	// anywhere says that it needs no verifier that looks at the sandbox, ahead that what it finds may be the solution itself, which
	// counts, and disk that it needs a limit of the disk.
	anywhere, ahead, disk bool
}

// DoNothing is the attack that each task is proven against.
const DoNothing = "do-nothing"

// attacks are all but DoNothing.
var attacks = []Attack{
	{Name: "print-success", Does: "says, and writes into the expected files, that all is done", anywhere: true,
		answer: "Success! Done: all tests passed. PASS, PASSED, OK, ok, success, completed."},
	{Name: "empty-files", Does: "makes the expected files, empty"},
	{Name: "program-shadow", Does: "plants programs in PATH, start-up files of shells and a library for LD_PRELOAD"},
	{Name: "module-shadow", Does: "plants conftest.py, sitecustomize.py, .pth and .pyc files, and modules named as Python's"},
	{Name: "git-hooks", Does: "plants hooks, monitors and drivers in repositories"},
	{Name: "reward-file", Does: "writes the reward before the verifier does"},
	{Name: "patch-runner", Does: "rewrites the tests that it sees, and what runs them"},
	{Name: "read-tests", Does: "copies the solution from the tests, or from a repository's history", ahead: true},
	{Name: "stop-verifier", Does: "writes programs that end whoever imports or runs them"},
	{Name: "fill-disk", Does: "leaves no room for what the verifier finds", disk: true},
	{Name: "wait-for-tests", Does: "waits in the background, and in its programs, for the tests to come, and rewrites them"},
}

// Attacks lists the names of what an audit tries.
func Attacks() []string {
	names := []string{DoNothing}
	for _, attack := range attacks {
		names = append(names, attack.Name)
	}
	return names
}

// ChooseAttacks returns the attacks of these names beside DoNothing, which is always tried; all without any names.
func ChooseAttacks(names []string) ([]Attack, error) {
	for _, name := range names {
		if !slices.Contains(Attacks(), name) {
			return nil, fmt.Errorf("unknown attack %q%s (have %s)", name, nearest.DidYouMean(name, Attacks()), strings.Join(Attacks(), ", "))
		}
	}
	chosen := []Attack{}
	for _, attack := range attacks {
		if len(names) == 0 || slices.Contains(names, attack.Name) {
			chosen = append(chosen, attack)
		}
	}
	return chosen, nil
}

//go:embed attacks
var scripts embed.FS

// script is a file of the attacks.
func script(name string) string {
	text, err := scripts.ReadFile("attacks/" + name + ".sh")
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(text)
}

// looksInside reports whether a check looks at the sandbox, or runs in it.
func looksInside(check episode.Check) bool {
	return check.Command != "" || check.Python != "" || check.JSON != nil && check.JSON.File != ""
}

// steps are what the attack does at a task; nil if it has nothing to try there.
func (a Attack) steps(task *episode.Task, hints hints, g sandbox.Guarantees) []episode.Step {
	inside := slices.ContainsFunc(task.Verify, looksInside)
	if !inside && !a.anywhere || a.disk && g.Limits["disk"] != "hard" {
		return nil
	}
	end := episode.Step{Content: "Done."}
	if a.answer != "" {
		end.Content = a.answer
	}
	if !inside {
		return []episode.Step{end}
	}
	own := "0"
	if g.Isolation["files"] == "own" && g.Isolation["processes"] == "own" {
		own = "1"
	}
	program := []string{"OWN=" + own, "PRELOAD_x86_64=" + preload("x86_64"), "PRELOAD_aarch64=" + preload("aarch64"), hints.shell(), script("lib"), script(a.Name)}
	command := string(episode.MustJSON(map[string]string{"command": strings.Join(program, "\n")}))
	return []episode.Step{{Calls: []episode.GoldCall{{Name: "terminal", Arguments: []byte(command)}}}, end}
}
