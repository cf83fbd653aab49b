package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDisk plays on disks that become full or read-only under the run, mends them and resumes: the rows are those of a run
// on a good disk. The disks are real ones, in memory and in a mount namespace of the test's own.
func TestDisk(t *testing.T) {
	model, dataset := openCrashModel(t), crashDataset(t)
	build(t)
	calm := &story{model: model, dataset: dataset, workers: 4, sandbox: "local", dir: filepath.Join(t.TempDir(), "calm")}
	calm.done(t, false)
	want := anywhere(rows(t, calm.dir))

	const full, readOnly = "no space left for", "cannot be written by this user"
	tests := []struct {
		name, size string // of the disk at first
		before     string // what a shell does before the run that is watched
		want       string // what that run says
	}{
		{"full in the journal", "64k", ":", full},
		{"full further on", "220k", ":", full},
		{"full in what is made of it", "400k", ":", full},
		{"read-only on resume", "64m", "$RUN & n=0; until test -e $DISK/run.json || test $n -gt 600; do n=$((n+1)); sleep 0.1; done; sleep 0.1; kill -9 $!; wait; n=0; until mount -o remount,ro $DISK 2>/dev/null || test $n -gt 300; do n=$((n+1)); sleep 0.1; done; RESUME=--resume", readOnly},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &story{model: model, dataset: dataset, workers: 3, sandbox: "local", segment: "64K", dir: filepath.Join(t.TempDir(), "run")}
			kept := filepath.Join(t.TempDir(), "kept")
			script := fmt.Sprintf(`
DISK=%s RUN="%s" RESUME=
mkdir -p $DISK && mount -t tmpfs -o size=%s none $DISK || exit 99
%s
$RUN $RESUME
first=$?
mount -o remount,rw,size=64m $DISK
test ! -e $DISK/run.json || RESUME=--resume
$RUN $RESUME
second=$?
cp -r $DISK %s
echo $first $second`, s.dir, strings.Join(s.command(false).Args, " "), tt.size, tt.before, kept)
			got := finish(t, exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script))
			if got.code != 0 {
				t.Fatalf("exit code %d: %s%s", got.code, got.out, got.errOut)
			}
			if !strings.Contains(got.errOut, tt.want) {
				t.Errorf("the run says %q, want %q", got.errOut, tt.want)
			}
			if codes := strings.TrimSpace(got.out); codes != "1 0" && codes != "2 0" {
				t.Errorf("exit codes %q, want a failure and then 0: %s", codes, got.errOut)
			}
			sameRows(t, want, anywhere(rows(t, kept)))
		})
	}
}
