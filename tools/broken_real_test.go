package tools_test

import (
	"cmp"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

type realFile struct{ name, text string }

// roots are this repository and Go itself, whose place a test that is compiled with -trimpath does not know.
func roots(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"..", strings.TrimSpace(string(out))}
}

// realFiles are some of the files of this repository and of Go itself, the same ones each time.
func realFiles(t *testing.T) []realFile {
	t.Helper()
	most := map[string]int{".go": 45, ".md": 10, ".py": 10, ".json": 15, ".yaml": 12, ".sh": 8, ".js": 5, ".html": 5}
	var files []realFile
	for _, root := range roots(t) {
		byKind := map[string][]string{}
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && most[filepath.Ext(name)] > 0 && !strings.Contains(name, "node_modules") {
				byKind[filepath.Ext(name)] = append(byKind[filepath.Ext(name)], name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for kind, names := range byKind {
			// Which are taken depends on their names alone: a file that comes or goes changes one of them at most.
			rank := func(name string) uint64 { return hashOf(strings.TrimPrefix(name, root)) }
			slices.SortFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
			for _, name := range names[:min(most[kind], len(names))] {
				if data, err := os.ReadFile(name); err != nil {
					t.Fatal(err)
				} else if text := string(data); utf8.ValidString(text) && strings.TrimSpace(text) != "" && len(text) < 1<<20 {
					files = append(files, realFile{strings.TrimPrefix(name, root+"/"), text})
				}
			}
		}
	}
	slices.SortFunc(files, func(a, b realFile) int { return strings.Compare(a.name, b.name) })
	return files
}

func hashOf(text string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return hash.Sum64()
}

// realCommands are those that people wrote down with a quote or a backslash: in shell scripts, and typical ones.
func realCommands(t *testing.T) []string {
	t.Helper()
	typical, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, root := range roots(t) {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			kind := filepath.Ext(name)
			script := kind == ".sh" || kind == ".bash" || kind == "" && filepath.Base(filepath.Dir(name)) == "scripts"
			if err != nil || entry.IsDir() || !script {
				return err
			}
			data, err := os.ReadFile(name)
			for _, line := range strings.Split(string(data), "\n") {
				if line = strings.TrimSpace(line); strings.ContainsAny(line, "\"\\") && !strings.HasPrefix(line, "#") && utf8.ValidString(line) {
					commands = append(commands, line)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(commands)
	commands = slices.Compact(commands)
	const most = 130
	for i := range most {
		commands[i] = commands[i*len(commands)/most]
	}
	return append(commands[:most], strings.Split(strings.TrimSpace(string(typical)), "\n%\n")...)
}

// patternOf is a pattern that finds a line.
func patternOf(line string, rng *rand.Rand) string {
	line = strings.TrimRight(line, "\n")
	if len(line) < 4 || len(line) > 200 || !strings.ContainsAny(line, "\"'\\(.$") {
		return ""
	}
	pattern := regexp.QuoteMeta(line)
	switch rng.IntN(4) {
	case 0:
		pattern = regexp.MustCompile(`\s+`).ReplaceAllLiteralString(pattern, `\s+`)
	case 1:
		pattern = regexp.MustCompile(`\d+`).ReplaceAllLiteralString(pattern, `\d+`) + "$"
	case 2:
		pattern = strings.ReplaceAll(pattern, "\t", `\t`) + `\n`
	}
	return pattern
}
