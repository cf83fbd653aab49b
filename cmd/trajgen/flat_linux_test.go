package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"trajgen/pipeline/model/scripted"
)

// TestMemoryIsFlat holds that no command's memory grows with the run's: a run to its end, and what reads its journal.
func TestMemoryIsFlat(t *testing.T) {
	t.Parallel()
	const few, many, size = 300, 650, 100_000 // few fill the buffers of a Parquet file already
	rng := rand.NewChaCha8([32]byte{3})
	var tasks strings.Builder
	for n := range many {
		noise := make([]byte, size/20) // ten times the same: less would compress for most of the test's time
		_, _ = rng.Read(noise)
		row, err := json.Marshal(map[string]any{"id": fmt.Sprint("t", n), "prompt": strings.Repeat(hex.EncodeToString(noise), 10), "tags": []string{fmt.Sprint("tag", n)}, "verify": map[string]string{"exact": "x"}, "gold": "x"})
		if err != nil {
			t.Fatal(err)
		}
		tasks.Write(append(row, '\n'))
	}
	dataset := write(t, "d.jsonl", tasks.String())
	heap := regexp.MustCompile(`(?m)^gc .* \d+->\d+->(\d+) MB`)
	most := func(args ...string) (most int) { // MB that were in use at one time
		t.Helper()
		cmd := exec.Command(build(t), args...)
		cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1", "GOGC=50")
		got := finish(t, cmd)
		if got.code != exitDone {
			t.Fatalf("%v: exit code %d: %s", args, got.code, got.errOut)
		}
		for _, found := range heap.FindAllStringSubmatch(got.errOut, -1) {
			mb, _ := strconv.Atoi(found[1])
			most = max(most, mb)
		}
		return most
	}
	url := endpoint(t, scripted.Config{Model: "m"})
	used := map[int]map[string]int{}
	for _, n := range []int{few, many} {
		dir := filepath.Join(t.TempDir(), "run")
		playing := []string{"run", "--dataset", dataset, "--max-tasks", fmt.Sprint(n), "--model", "m", "--base-url", url, "--sandbox", "local", "--toolsets", "todo", "--workers", "2", "--quiet", "--out", dir}
		used[n] = map[string]int{
			"run": most(playing...), "the end of a run": most(append(playing, "--resume")...), "report": most("report", dir), "diff": most("diff", dir, dir), "verify": most("verify", dir),
		}
	}
	t.Logf("MB at most, with %d episodes: %v; with %d: %v", few, used[few], many, used[many])
	for command, mb := range used[many] {
		if grown := mb - used[few][command]; grown > (many-few)*size>>20*2/3 {
			t.Errorf("%s: %d MB more for %d MB of prompts more", command, grown, (many-few)*size>>20)
		}
	}
}
