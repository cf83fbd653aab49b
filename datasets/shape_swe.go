package datasets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"trajgen/datasets/internal/harbor"
	"trajgen/pipeline/episode"
)

// isSWE tells a row of SWE-bench, or of one of the datasets that are made like it.
func isSWE(c columns) bool {
	return c.has("instance_id", "repo", "problem_statement") && (c.has("FAIL_TO_PASS") || c.has("test_patch") || c.has("patch")) &&
		!c.has("prompt") && !c.has("messages")
}

var (
	//go:embed shapes/history.sh
	sweHistory string
	//go:embed shapes/swe_test.sh
	sweTest string
	//go:embed shapes/swe_judge.py
	sweJudge string
)

// sweCwd is where the images have the repository.
const sweCwd = "/testbed"

// sweTimeout is what the tests of a repository may take, in seconds.
const sweTimeout = 1800

var (
	commitHash = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
	sweID      = regexp.MustCompile(`^[A-Za-z0-9_.-]+__[A-Za-z0-9_.-]+-[0-9]+$`)
)

// sweFields makes a task of an issue. The repository is the image's, at the commit that is named; the tests are put
// back before they judge.
func sweFields(b *builder, c columns) {
	id := c.text("instance_id")
	b.set("id", id)
	b.set("prompt", "The repository in "+sweCwd+" has the problem that is described below. Change its source so that the problem is solved. "+
		"The tests that will judge it are not there; you need not write any.\n\n<problem_statement>\n"+strings.TrimSpace(c.text("problem_statement"))+"\n</problem_statement>\n")
	b.set("cwd", sweCwd)
	b.set("tags", []string{c.text("repo")})
	b.set("resources", map[string]string{"memory": "4G", "disk": "8G"})
	// The images keep the repository's own Python in a conda environment that their login shells switch to.
	b.set("env", map[string]string{"PATH": "/opt/miniconda3/envs/testbed/bin:/opt/miniconda3/condabin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
	if image := sweImage(c); image != "" {
		b.set("image", image)
	} else {
		b.wrong.addf("instance_id %q names no image, and there is no column image_name or docker_image", id)
	}
	base := c.text("base_commit")
	switch {
	case strings.HasPrefix(c.text("repo"), "swesmith/"):
		b.sweSmith(c)
		return
	case !commitHash.MatchString(base):
		b.wrong.addf("base_commit is %q, want the hash of a commit", base)
		return
	}
	b.set("setup", "set -e\nBASE="+base+"\n"+sweHistory)
	if patch := c.text("patch"); strings.TrimSpace(patch) != "" {
		b.set("gold", map[string]string{"command": applyPatch("git apply --whitespace=nowarn -", patch), "answer": "The problem is solved."})
	}
	b.sweVerify(c, base)
}

// sweImage is the image of an instance: the one that a column names, else the one that its id does.
func sweImage(c columns) string {
	for _, column := range []string{"image_name", "docker_image", "image"} {
		if image := c.text(column); image != "" {
			return image
		}
	}
	id := c.text("instance_id")
	if !sweID.MatchString(id) {
		return ""
	}
	return "swebench/sweb.eval.x86_64." + strings.ToLower(strings.ReplaceAll(id, "__", "_1776_")) + ":latest"
}

// sweSmith plays a bug that was planted. Its patch plants it, and its tests lie in the repository that the agent works
// on, of which only the image has a copy that could be trusted: so nothing judges it.
func (b *builder) sweSmith(c columns) {
	patch := c.text("patch")
	if strings.TrimSpace(patch) == "" {
		b.wrong.addf("patch is empty, and would plant the bug")
	}
	b.set("setup", "set -e\ngit config --global --add safe.directory \"$PWD\"\n"+applyPatch("git apply --whitespace=nowarn -", patch)+`
rm -rf .git
git init -q
git add -A
git -c user.name=task -c user.email=task@localhost commit -q -m 'the repository'`)
	b.set("gold", map[string]string{"command": applyPatch("git apply --reverse --whitespace=nowarn -", patch), "answer": "The problem is solved."})
	b.note("judged", "not: the row has no test_patch, and the tests in the repository are the agent's to change")
}

// applyPatch is a shell command that feeds a patch to another.
func applyPatch(command, patch string) string {
	mark := "END_OF_PATCH"
	for strings.Contains(patch, mark) {
		mark += "_"
	}
	return command + " <<'" + mark + "'\n" + strings.TrimSuffix(patch, "\n") + "\n" + mark
}

// sweVerify sets the check: the tests of the patch, and those that passed before.
func (b *builder) sweVerify(c columns, base string) {
	expected := map[string]any{"runner": "pytest"}
	named := 0
	for _, column := range []string{"FAIL_TO_PASS", "PASS_TO_PASS"} {
		names, err := testNames(c[column])
		if err != nil {
			b.wrong.addf("%s: %v", column, err)
		}
		expected[strings.ToLower(column)] = names
		named += len(names)
	}
	patch := c.text("test_patch")
	files, err := patchedFiles(patch)
	if err != nil {
		b.wrong.addf("test_patch: %v", err)
	}
	switch {
	case named == 0:
		b.note("judged", "not: FAIL_TO_PASS and PASS_TO_PASS name no test")
		return
	case len(files) == 0:
		b.note("judged", "not: test_patch has no file, so it is not known which tests to run")
		return
	}
	runner, run := sweRunner(c.text("repo"), files)
	expected["runner"] = runner
	b.note("judged", "by the %d tests that are named, with %s", named, runner)
	var script strings.Builder
	fmt.Fprintf(&script, "BASE=%s\nfiles=(%s)\nrun_tests() { %s; }\n", base, harbor.Quoted(files), run)
	b.set("verify", map[string]any{
		"command": `bash "$TESTS/test.sh"`, "reward": "stdout", "timeout": sweTimeout,
		"tests": map[string]string{
			"/tests/test.sh": sweTest, "/tests/task.sh": script.String(), "/tests/judge.py": sweJudge,
			"/tests/test.patch": patch, "/tests/expected.json": string(episode.MustJSON(expected)),
		},
	})
}

// noTests are files of a patch that hold no tests for a runner.
var noTests = []string{".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml", ".rst", ".cfg", ".ini"}

// sweRunner is what runs the tests in files of a repository, and its command.
func sweRunner(repo string, files []string) (name, command string) {
	var tests []string
	for _, file := range files {
		if !slices.Contains(noTests, path.Ext(file)) {
			tests = append(tests, file)
		}
	}
	switch repo {
	case "django/django":
		var modules []string
		for _, file := range tests {
			module := strings.TrimSuffix(strings.TrimPrefix(file, "tests/"), ".py")
			modules = append(modules, strings.ReplaceAll(module, "/", "."))
		}
		return "django", "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 " + harbor.Quoted(modules)
	case "sympy/sympy":
		return "sympy", "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose " + harbor.Quoted(tests)
	}
	return "pytest", "python -m pytest -rA --tb=no --color=no -p no:cacheprovider " + harbor.Quoted(tests)
}

// testNames takes a list of names, or the JSON text of one.
func testNames(value json.RawMessage) ([]string, error) {
	if value == nil {
		return []string{}, nil
	}
	items, err := elements(structured(value))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(items))
	for i, item := range items {
		var ok bool
		if names[i], ok = asString(item); !ok || names[i] == "" {
			return nil, fmt.Errorf("a list with %s, want names of tests", kindOf(item))
		}
	}
	return names, nil
}

// patchedFiles are the files that a patch makes, changes or removes, sorted.
func patchedFiles(patch string) (files []string, err error) {
	hunk := 0 // lines that are left of one
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\r\n")
		if m := hunkHead.FindStringSubmatch(line); m != nil {
			hunk = count(m[1]) + count(m[2])
			continue
		}
		switch {
		case hunk > 0 && strings.HasPrefix(line, `\`):
			continue
		case hunk > 0 && (strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-")):
			hunk--
			continue
		case hunk > 0:
			hunk -= 2
			continue
		}
		name := ""
		for _, prefix := range []string{"--- a/", "+++ b/", "rename from ", "rename to "} {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				name, _, _ = strings.Cut(rest, "\t")
			}
		}
		if name == "" {
			continue
		}
		clean, err := cleanPath(name)
		if err != nil || strings.HasPrefix(clean, ".git/") {
			return nil, fmt.Errorf("%q is not a place for a file of the repository", name)
		}
		files = append(files, clean)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

var hunkHead = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// count is the number of lines that the head of a hunk gives: 1 where it gives none.
func count(text string) int {
	n := 1
	if text != "" {
		_, _ = fmt.Sscan(text, &n)
	}
	return min(n, 1<<30)
}
