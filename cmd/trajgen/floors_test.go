package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// floors is the drawing of the house: a package imports only from lower floors. A package below another one with no
// entry of its own stands on that one's floor and belongs to it. Between two floors stand rooms within a room.
var floors = map[string]float64{
	"cmd/trajgen":             6,
	"cmd/sandboxhelper":       6,
	"scripts/bench":           6,
	"pipeline/run/check":      5.5,
	"pipeline/run/setup":      5.5,
	"pipeline/run/versus":     5.7,
	"pipeline/run":            5,
	"pipeline/run/proof":      4.5,
	"pipeline":                4,
	"sandbox/all":             4,
	"pipeline/rollout":        3,
	"tools/plugin":            2.5,
	"tools":                   2,
	"tools/mcpserve":          1.8,
	"tools/search":            1.8,
	"tools/browser":           1.95,
	"tools/media":             1.95,
	"tools/mcp":               1.95,
	"tools/rl":                1.95,
	"tools/skills":            1.9,
	"tools/moa":               1.95,
	"tools/home":              1.95,
	"tools/messages":          1.95,
	"tools/skills/hub":        1.95,
	"tools/browser/page":      1.9,
	"tools/browser/place":     1.9,
	"tools/web":               1.9,
	"tools/web/fetch":         1.85,
	"tools/web/provider":      1.85,
	"tools/web/corpus":        1.87,
	"tools/web/extract":       1.8,
	"tools/web/tape":          1.8,
	"tools/web/guard":         1.7,
	"tools/web/source":        1.6,
	"tools/web/coding":        1.6,
	"tools/page":              1.7,
	"tools/delegate":          1.7,
	"tools/policy":            1.7,
	"tools/sessions":          1.7,
	"tools/threats":           1.7,
	"tools/twin":              1.7,
	"tools/cron":              0.5, // datasets knows the state of its jobs
	"pipeline/reaction":       1.5,
	"pipeline/model/budget":   1.5,
	"outputs/sinktest":        1.5,
	"outputs/compress":        1.5,
	"outputs/export":          1.4,
	"outputs/report":          1.3,
	"outputs/reliability":     1.6,
	"outputs/rows":            1.2,
	"outputs/journal":         1.1,
	"outputs":                 1,
	"registry":                1,
	"datasets":                1,
	"pipeline/model":          1,
	"sandbox/native":          backends,
	"sandbox/local":           backends,
	"sandbox/docker":          backends,
	"sandbox/ssh":             backends,
	"sandbox/gvisor":          backends,
	"sandbox/singularity":     backends,
	"sandbox/modal":           backends,
	"sandbox/daytona":         backends,
	"sandbox/internal/agent":  0.7,
	"sandbox/internal/rented": 0.8,
	"sandbox/relay":           0.6,
	"sandbox/images":          0.5,
	"sandbox/sandboxtest":     0.5,
	"tools/web/sites":         0.5, // datasets knows their names
	"tools/home/house":        0.5, // and with what these begin
	"tools/messages/outbox":   0.5,
	"pipeline/reward":         0.5,
	"pipeline/model/gate":     0.5,
	"pipeline/model/rawtext":  0.5,
	"pipeline/model/scripted": 0.5,
	"pipeline/model/record":   0.5,
	"outputs/media":           0.4,
	"pipeline/episode":        0,
	"distributions":           0,
	"sandbox":                 0,
	"pipeline/where":          0,
	"pipeline/where/nearest":  -0.5,
	"outputs/log":             0,
}

// backends is the floor of what sandboxes are opened by.
const backends = 1

// linkers are the only ones to know backends: the list of all, and what an agent on another machine serves.
var linkers = []string{"sandbox/all", "cmd/sandboxhelper"}

// isBackend says whether a room is one that opens sandboxes.
func isBackend(room string) bool {
	return strings.HasPrefix(room, "sandbox/") && floors[room] == backends
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
	linked := map[string]bool{}
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
			switch {
			case to == from:
			case to != target && strings.Contains(target, "/internal/"): // which the compiler keeps to those around it
			case floors[to] >= floors[from]:
				t.Errorf("%s (floor %v) imports %s (floor %v): only lower floors may be imported", name, floors[from], target, floors[to])
			case isBackend(to) && !slices.Contains(linkers, from):
				t.Errorf("%s imports the backend %s, which is for %v alone", name, target, linkers)
			}
			if isBackend(to) && from == "sandbox/all" {
				linked[to] = true
			}
		}
	}
	for room := range floors {
		if isBackend(room) && !linked[room] {
			t.Errorf("sandbox/all does not link %s, and its tests do not ask it", room)
		}
	}
}

// TestFloorsAreDrawn holds that the table in CONTRIBUTING.md is this one.
func TestFloorsAreDrawn(t *testing.T) {
	drawn, whole := map[string]float64{}, maps.Clone(floors)
	maps.DeleteFunc(whole, func(_ string, floor float64) bool { return floor != math.Trunc(floor) }) // of rooms within rooms
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d) \\| (`.*`) \\|$").FindAllStringSubmatch(readPage(t, "CONTRIBUTING.md"), -1) {
		for _, name := range strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ") {
			drawn[name] = float64(row[1][0] - '0')
		}
	}
	if diff := cmp.Diff(whole, drawn); diff != "" {
		t.Errorf("floors (-held +drawn):\n%s", diff)
	}
}
