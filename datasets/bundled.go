package datasets

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"trajgen/pipeline/episode"
)

//go:embed bundled/*.yaml bundled/guard.py bundled/research/*.yaml bundled/browser/*.yaml bundled/skills/*.yaml bundled/home/*.yaml
var bundled embed.FS

// bundledRows gives the rows of the files of a bundled dataset, which is the folder of its name, in the order of their names.
func bundledRows(dataset string, yield func(row) bool) error {
	names, err := fs.Glob(bundled, dataset+"/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		rows, err := bundledFile(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range rows {
			if !yield(r) {
				return nil
			}
		}
	}
	return nil
}

// bundledFiles has a function for each file that was asked for, which reads it once: a run goes through its dataset several times.
var bundledFiles sync.Map

func bundledFile(name string) ([]row, error) {
	read, _ := bundledFiles.LoadOrStore(name, sync.OnceValues(func() (rows []row, err error) {
		guard, err := bundled.ReadFile("bundled/guard.py")
		if err != nil {
			return nil, err
		}
		data, err := bundled.ReadFile(name)
		if err != nil {
			return nil, err
		}
		tasks, err := ParseYAML(data)
		if err != nil {
			return nil, err
		}
		addGuard(tasks, string(guard))
		err = taskRows(tasks, func(r row) bool {
			r.file = name
			if bytes.Contains(r.text, []byte(importsGuard)) {
				// With sorted keys: rows of runs have the calls of these tasks' solutions with their arguments in that order.
				r.text = episode.MustJSON(decodeAny(r.text))
			}
			rows = append(rows, r)
			return true
		})
		return rows, err
	}))
	return read.(func() ([]row, error))()
}

const importsGuard = "from guard import "

// addGuard puts /tests/guard.py (bundled/guard.py) beside each file that imports it. The module runs the agent's code in a process
// apart from the check's, for many tasks; none has to carry it along.
func addGuard(node *yaml.Node, guard string) {
	imports := false
	for i, inner := range node.Content {
		addGuard(inner, guard)
		if i%2 == 1 && strings.HasPrefix(node.Content[i-1].Value, testsPrefix) && strings.Contains(inner.Value, importsGuard) {
			imports = true
		}
	}
	if node.Kind == yaml.MappingNode && imports {
		var name, file yaml.Node
		name.SetString(testsPrefix + "guard.py")
		file.SetString(guard)
		node.Content = append(node.Content, &name, &file)
	}
}

// bundledDigest covers names and contents, with their lengths, so that different sets of files have different digests.
func bundledDigest(dataset string) (string, error) {
	names, err := fs.Glob(bundled, dataset+"/*.*") // no folders
	if err != nil {
		return "", fmt.Errorf("list the bundled tasks: %w", err)
	}
	sum := sha256.New()
	for _, name := range names {
		data, err := bundled.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read the bundled tasks: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		sum.Write(data)
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}
