package rl

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"trajgen/outputs/log/disk"
	"trajgen/registry"
)

// Start begins a training with the present configuration, and waits until it is ready.
func (v *View) Start(ctx context.Context) (Look, error) {
	environment, config, err := v.Config()
	if err != nil {
		return Look{}, err
	}
	v.mu.Lock()
	v.started++
	id := fmt.Sprintf("%s %d %d", v.episode, v.attempt, v.started)
	v.mu.Unlock()
	return remember(v, "start "+id, func() (Look, error) {
		if v.episode == "" { // calls by hand
			id += " " + strconv.Itoa(v.lab.count())
		}
		sum := sha256.Sum256([]byte(id))
		t := Training{
			ID: hex.EncodeToString(sum[:4]), Episode: v.episode, Environment: environment, Config: config, Started: v.lab.cfg.Now(),
		}
		if err := v.lab.begin(&t); err != nil {
			return Look{}, err
		}
		return v.lab.ready(ctx, t)
	})
}

func (l *Lab) count() int {
	all, _ := l.list("") // whose error starting reports
	return len(all)
}

// wrapper notes how the trainer ended, which a runner that was started later could not learn otherwise.
const wrapper = `"$@"; echo $? > "$TRAJGEN_RL_TRAINING/exit.tmp" && cd "$TRAJGEN_RL_TRAINING" && mv exit.tmp exit`

// begin starts the trainer, unless the attempt has started it before a crash.
func (l *Lab) begin(t *Training) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.list("")
	if err != nil {
		return err
	}
	running := 0
	for _, other := range all {
		look := l.look(other)
		if other.ID == t.ID && other.Environment == t.Environment && look.Status != Died && look.Status != Stopped {
			*t = other
			return nil
		}
		if look.Status == Running || look.Status == Starting {
			running++
		}
	}
	if running >= l.atOnce() {
		return registry.Failf("busy", "%d trainings are going on, which is the most: stop one, or wait until it has ended", running)
	}
	dir := l.dir(t.ID)
	config, err := json.MarshalIndent(t.Config, "", "  ")
	if err = errors.Join(err, os.RemoveAll(dir), disk.MakeDir(dir)); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600), l.save(*t)); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	environment := l.cfg.Settings.Environments[t.Environment]
	places := []string{
		"config", filepath.Join(dir, "config.json"), "metrics", filepath.Join(dir, metricsName),
		"dataset", absolute(environment.Dataset), "run_file", absolute(environment.RunFile), "program", l.cfg.Program, "training", dir,
	}
	var pairs, env []string
	for i := 0; i < len(places); i += 2 {
		pairs = append(pairs, "{"+places[i]+"}", places[i+1])
		env = append(env, "TRAJGEN_RL_"+strings.ToUpper(places[i])+"="+places[i+1])
	}
	args := []string{"-c", wrapper, "trainer"}
	for _, arg := range l.cfg.Settings.Trainer.Command {
		args = append(args, strings.NewReplacer(append(pairs, "{dir}", dir)...).Replace(arg))
	}
	cmd := exec.Command("sh", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, log, log, append(append([]string{}, l.env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C is not for it
	if err := cmd.Start(); err != nil {
		return err
	}
	t.PID = cmd.Process.Pid
	return l.save(*t)
}

// absolute is a path that the trainer, which starts elsewhere, finds, too. A name such as bundled stays.
func absolute(path string) string {
	full, err := filepath.Abs(path)
	if _, missing := os.Stat(full); path == "" || err != nil || missing != nil {
		return path
	}
	return full
}

// ready waits until a training is ready.
func (l *Lab) ready(ctx context.Context, t Training) (Look, error) {
	limit := cmp.Or(l.cfg.Settings.Trainer.Ready.Timeout, defaultReady)
	late := time.NewTimer(limit)
	defer late.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		look, err := l.watch(ctx, t)
		switch {
		case err != nil:
			return look, err
		case look.Status == Running || look.Status == Finished:
			return look, nil
		case look.Status != Starting:
			f := registry.Failf("training_failed", "the trainer ended before it was ready")
			f.Extra = map[string]any{"run_id": t.ID, "status": look.Status, "log": l.log(t.ID)}
			return look, f
		}
		select {
		case <-ticker.C:
			continue
		case <-ctx.Done(): // when the episode goes on, it finds the training
			return look, context.Cause(ctx)
		case <-late.C:
		}
		f := registry.Failf("not_ready", "the trainer was not ready within %s, and was stopped", limit)
		f.Extra = map[string]any{"run_id": t.ID, "log": l.log(t.ID)}
		return look, errors.Join(l.stop(t), f)
	}
}

// watch looks at a training, and notes that it is ready.
func (l *Lab) watch(ctx context.Context, t Training) (Look, error) {
	look := l.look(t)
	if look.Status != Starting || !l.isReady(ctx, t.ID) {
		return look, nil
	}
	look.Ready, look.Status = true, Running
	return look, l.save(look.Training)
}

// readLog is how much of a log is looked through for what shows that a trainer is ready.
const readLog = 1 << 20

func (l *Lab) isReady(ctx context.Context, id string) bool {
	r := l.cfg.Settings.Trainer.Ready
	if r.File != "" {
		if _, err := os.Stat(filepath.Join(l.dir(id), r.File)); err != nil {
			return false
		}
	}
	if r.Log != "" {
		said, _ := read(filepath.Join(l.dir(id), "log.txt"), 0, readLog)
		if !regexp.MustCompile("(?m)" + r.Log).Match(said) {
			return false
		}
	}
	if r.URL == "" {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// read reads a part of a file; a negative offset is from its end.
func read(path string, offset int64, size int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && offset < 0 {
		offset = max(0, info.Size()+offset)
	}
	data := make([]byte, size)
	n, _ := f.ReadAt(data, offset)
	return data[:n], nil
}

// log is the end of what a trainer said.
func (l *Lab) log(id string) string {
	said, err := read(filepath.Join(l.dir(id), "log.txt"), -2000, 2000)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return strings.ToValidUTF8(string(bytes.TrimSpace(said)), "\uFFFD")
}
