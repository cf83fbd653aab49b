package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// floors is the drawing of the house: a package imports only from lower floors. A package below another one with no
// entry of its own stands on that one's floor and belongs to it.
var floors = map[string]int{
	"cmd/trajgen":       6,
	"cmd/sandboxhelper": 6,
	"pipeline/run":      5,
	"pipeline":          4,
	"scripts/bench":     6,
	"pipeline/rollout":  3,
	"tools":             2,
	"pipeline/reward":   2,
	"registry":          1,
	"datasets":          1,
	"pipeline/model":    1,
	"outputs":           1,
	"outputs/log":       0,
	"pipeline/episode":  0,
	"distributions":     0,
	"sandbox":           0,
	"pipeline/where":    0,
}

// room returns the entry that a package belongs to.
func room(pkg string) string {
	for {
		if _, ok := floors[pkg]; ok {
			return pkg
		}
		cut := strings.LastIndex(pkg, "/")
		if cut < 0 {
			return ""
		}
		pkg = pkg[:cut]
	}
}

func TestFloors(t *testing.T) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "trajgen/...")
	list.Stderr = t.Output()
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(pkg.ImportPath, "trajgen/")
		from := room(name)
		if from == "" {
			t.Errorf("%s stands on no floor: add it to the drawing", name)
			continue
		}
		for _, imported := range pkg.Imports {
			target, ours := strings.CutPrefix(imported, "trajgen/")
			if !ours {
				continue
			}
			to := room(target)
			if to != from && floors[to] >= floors[from] {
				t.Errorf("%s (floor %d) imports %s (floor %d): only lower floors may be imported", name, floors[from], target, floors[to])
			}
		}
	}
}

// TestFloorsAreDrawn holds that the table in CONTRIBUTING.md is this one.
func TestFloorsAreDrawn(t *testing.T) {
	drawn := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d) \\| (`.*`) \\|$").FindAllStringSubmatch(readPage(t, "CONTRIBUTING.md"), -1) {
		for _, name := range strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ") {
			drawn[name] = int(row[1][0] - '0')
		}
	}
	if diff := cmp.Diff(floors, drawn); diff != "" {
		t.Errorf("floors (-held +drawn):\n%s", diff)
	}
}
