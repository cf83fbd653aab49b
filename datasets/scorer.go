package datasets

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
)

// asScorer takes the path of a Python file: beside the dataset, or among the check's tests.
func asScorer(value json.RawMessage) (string, error) {
	name, err := asPlain(value)
	if err == nil {
		name, err = cleanTestPath(name)
	}
	if err == nil && path.Ext(name) != ".py" {
		err = fmt.Errorf("%q, want a file of Python (.py) with a function score(answer, conversation, calls)", name)
	}
	return name, err
}

// beside reads files beside data files, in one pass over those: many rows may name the same one, and then share what it holds. The
// zero value is ready.
type beside struct {
	mu   sync.Mutex
	kept map[string]episode.File
}

// mostKept is how many files are kept.
const mostKept = 64

// read returns what a file holds, which is not to be changed.
func (b *beside) read(file, name string) (episode.File, error) {
	path := filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
	b.mu.Lock()
	defer b.mu.Unlock()
	if data, ok := b.kept[path]; ok {
		return data, nil
	}
	data, err := readBeside(file, name)
	if err != nil {
		return nil, err
	}
	if b.kept == nil || len(b.kept) == mostKept {
		b.kept = map[string]episode.File{}
	}
	b.kept[path] = data
	return data, nil
}

// scorers puts the scorers that lie beside a data file among the tests of the checks that name them.
func (b *beside) scorers(p *problems, t *episode.Task, file string) {
	for i, check := range t.Verify {
		name := check.Python
		if _, given := check.Tests[name]; name == "" || given {
			continue
		}
		at := fmt.Sprintf("%s.python", item("verify", i))
		if strings.HasPrefix(name, testsPrefix) {
			p.addf("%s: %q is not among the check's tests", at, name)
			continue
		}
		data, err := b.read(file, name)
		if err != nil {
			p.addf("%s: %v", at, err)
			continue
		}
		inside := testsPrefix + path.Base(name)
		if _, taken := check.Tests[inside]; taken {
			p.addf("%s: %q is the place of the scorer, and is among the tests, too", at, inside)
		}
		if t.Verify[i].Tests == nil {
			t.Verify[i].Tests = episode.Files{}
		}
		t.Verify[i].Tests[inside], t.Verify[i].Python = data, inside
	}
}

// mostScorer bounds a scorer's file, in bytes.
const mostScorer = 1 << 20

// readBeside reads a file below the directory of another. Links do not lead out of it.
func readBeside(file, name string) ([]byte, error) {
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("read %q beside the dataset: %w", name, bareCause(err))
	}
	defer dir.Close()
	name = filepath.FromSlash(name)
	info, err := dir.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %q beside the dataset: %w", name, bareCause(err))
	case !info.Mode().IsRegular() || info.Size() > mostScorer:
		return nil, fmt.Errorf("read %q beside the dataset: want a file of at most %d MiB", name, mostScorer>>20)
	}
	return dir.ReadFile(name)
}
