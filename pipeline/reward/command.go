package reward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// DefaultTimeout bounds a verifier's command that names no timeout.
const DefaultTimeout = 120 * time.Second

// verifyCommand runs a command in the working directory, after it has put the check's own files there.
//
// Exit status 0 is a reward of 1 and any other is 0, or, with reward: stdout, the last line of the output is the reward. A command
// that cannot be run, is ended by a signal or runs out of time is Broken, as it says nothing about the agent, unless the agent's
// code caused that. A verifier that runs the agent's code must bound its time itself, and count a timeout as failed.
func verifyCommand(ctx context.Context, check episode.Check, subject Subject) (judgement, error) {
	ran, err := execute(ctx, check, subject, nil)
	if err != nil || ran.failed {
		return judgement{detail: ran.detail}, err
	}
	judged, err := judge(check, ran.exit, ran.stdout, ran.detail)
	if err != nil && ran.blame != "" {
		return ran.failure(err), nil
	}
	return judged, err
}

// execution is a verifier's command that ended by itself.
type execution struct {
	sb     sandbox.Sandbox
	exit   sandbox.Exit
	stdout string
	detail string // what it printed last
	// failed says that the verdict is 0 already: files of the agent were in the way of its files, or tests took too long.
	failed bool
	// blame says what the agent's code did to the command, when no other code can have done it; otherwise "".
	blame string
}

// failure is the verdict on a command that the agent's code broke.
func (e execution) failure(err error) judgement {
	return judgement{detail: fmt.Sprintf("%s: %v", e.blame, err)}
}

// blame finds an interference with a verifier's command that only the agent's code can have caused, neither the command nor the
// machine: a limit was exceeded, as the limits are wide enough for a verifier with a proper solution, or the command got a signal
// although the sandbox is apart from other processes.
func blame(result sandbox.Result, apart bool) string {
	if slices.Contains(result.Exit.Limits, sandbox.LimitMachine) {
		return ""
	}
	for _, limit := range []string{sandbox.LimitMemory, sandbox.LimitProcesses, sandbox.LimitDisk, sandbox.LimitInodes} {
		if slices.Contains(result.Exit.Limits, limit) {
			return "the sandbox's limit of " + limit + " was reached"
		}
	}
	switch {
	case result.Flooded:
		return "too much was printed"
	case apart && signalOf(result.Exit) != 0:
		return "the signal came from within the sandbox"
	}
	return ""
}

// signalOf is the signal that ended a command or, as shells report it, its last program; 0 without one.
func signalOf(exit sandbox.Exit) int {
	if exit.Signal == 0 && exit.Code > 128 && exit.Code <= 128+64 {
		return exit.Code - 128
	}
	return exit.Signal
}

// execute puts a check's files in place, makes the other preparations, and runs its command.
func execute(ctx context.Context, check episode.Check, subject Subject, ready func(context.Context, sandbox.Sandbox) error) (ran execution, err error) {
	sb, err := subject.Sandbox(ctx) // before the verifier's clock starts: its set-up may take longer
	if err != nil {
		return ran, err
	}
	timeout, whole := cmp.Or(check.Timeout, DefaultTimeout), ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ground := groundOf(sb.Layout())
	said, variables, err := ground.said(subject)
	if err == nil {
		err = prepare(ctx, sb, check, subject.Apart, said)
	}
	if err == nil && ready != nil {
		err = ready(ctx, sb)
	}
	if err != nil {
		if obstructed(err) {
			return execution{failed: true, detail: "the agent left no place for the verifier's files: " + err.Error()}, nil
		}
		return ran, late(ctx, timeout, err)
	}
	both := sandbox.NewCapture(0, 4096)
	env := append(ground.environment(sb.Layout(), check), variables...)
	for _, name := range slices.Sorted(maps.Keys(check.Env)) {
		env = append(env, name+"="+check.Env[name])
	}
	most := mostOutput(check)
	run := func(args, env []string) (sandbox.Result, error) {
		return sandbox.Run(ctx, sb, sandbox.Command{Args: args, Env: env, Stdout: both, Stderr: both}, sandbox.RunOptions{Tail: most})
	}
	var result sandbox.Result
	args, direct := sb.Layout().Direct(check.Command, env)
	if direct = direct && !bringsPrograms(check); direct {
		result, err = run(args, append(env, ground.startups()...))
	}
	if !direct || errors.Is(err, sandbox.ErrNotFound) {
		result, err = run(ground.shell(check.Command), env)
	}
	if err != nil {
		return ran, late(ctx, timeout, err)
	}
	ran = execution{sb: sb, exit: result.Exit, stdout: string(result.Stdout.Bytes()), detail: tail(string(both.Bytes())), blame: blame(result, subject.Apart)}
	if check.TestTimeout > 0 && ran.blame == "" {
		ran.blame = ground.late(whole, sb.Files())
	}
	switch {
	case result.TimedOut && check.TestTimeout > 0 && ran.blame != "":
		ran.failed, ran.detail = true, fmt.Sprintf("%s: verifier timed out after %s: %s", ran.blame, timeout, ran.detail)
	case result.TimedOut:
		return ran, &Broken{Class: "timeout", Message: fmt.Sprintf("verifier timed out after %s: %s", timeout, ran.detail)}
	}
	return ran, nil
}

// judge turns how the command ended into a verdict.
func judge(check episode.Check, exit sandbox.Exit, stdout, detail string) (judgement, error) {
	switch signal := signalOf(exit); {
	case signal != 0:
		return judgement{}, &Broken{Class: fmt.Sprintf("signal_%d", signal), Message: fmt.Sprintf("verifier was ended by signal %d: %s", signal, detail)}
	case exit.Code == 126 || exit.Code == 127:
		return judgement{}, &Broken{Class: fmt.Sprintf("exit_%d", exit.Code), Message: fmt.Sprintf("verifier could not be run (status %d): %s", exit.Code, detail)}
	case parsers[check.Reward] != nil:
		return parsers[check.Reward](stdout, detail)
	case check.Reward != "stdout":
		return judgement{value: verdict(exit.Code == 0), detail: fmt.Sprintf("status %d: %s", exit.Code, detail)}, nil
	case exit.Code != 0:
		return judgement{}, &Broken{Class: fmt.Sprintf("exit_%d", exit.Code), Message: fmt.Sprintf("verifier ended with status %d and gave no reward: %s", exit.Code, detail)}
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	judged, err := parseText([]byte(last))
	if err != nil && strings.HasPrefix(last, "{") {
		judged, err = parseVerdict([]byte(last))
	}
	if err != nil {
		return judgement{}, &Broken{Class: "output", Message: fmt.Sprintf("the verifier's last line gives no reward: %v", err)}
	}
	judged.detail = detail
	return judged, nil
}

// prepare ends everything that the agent started and puts the check's files in place.
func prepare(ctx context.Context, sb sandbox.Sandbox, check episode.Check, apart bool, said []sandbox.FileWrite) error {
	if err := sb.KillAll(ctx); err != nil {
		return fmt.Errorf("end the agent's processes: %w", err)
	}
	layout := sb.Layout()
	// Any file in the private directory was planted by the agent: a module there would shadow the verifier's imports.
	if err := sb.Files().Remove(ctx, append([]string{layout.Tests}, shadows(check.Tests)...)...); err != nil {
		return fmt.Errorf("empty %s: %w", layout.Tests, err)
	}
	if err := groundOf(layout).make(ctx, sb.Files(), said); err != nil {
		return err
	}
	if err := clean(ctx, sb, layout, apart); err != nil {
		return err
	}
	var private, among []sandbox.FileWrite
	for _, name := range slices.Sorted(maps.Keys(check.Tests)) {
		write := sandbox.FileWrite{Path: name, Data: check.Tests[name], Mode: 0o755, Replace: true}
		if rest, ok := strings.CutPrefix(name, "/tests/"); ok {
			write.Path = path.Join(layout.Tests, rest)
			private = append(private, write)
		} else {
			among = append(among, write)
		}
	}
	if err := sb.Files().Write(ctx, private...); err != nil {
		err = fmt.Errorf("put the verifier's files in place: %w", err)
		if obstructed(err) {
			// The agent left no files there, so these are too many or too large for any episode.
			return &Broken{Class: "files", Message: err.Error()}
		}
		return err
	}
	if err := sb.Files().Write(ctx, among...); err != nil {
		return fmt.Errorf("put the verifier's files in place: %w", err)
	}
	return nil
}

// shadows are the agent's packages that Python would import instead of the check's modules in the working directory.
func shadows(tests episode.Files) []string {
	var paths []string
	for name := range tests {
		base, python := strings.CutSuffix(name, ".py")
		if !python || path.IsAbs(name) {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(tests)), func(other string) bool { return strings.HasPrefix(other, base+"/") }) {
			paths = append(paths, base)
		}
	}
	slices.Sort(paths)
	return paths
}

// errInTheWay says that files of the agent are where the check's belong.
var errInTheWay = errors.New("something is in the way")

// obstructed reports whether the check's files could not be written because of the agent: a full disk, or a file where a
// directory should be.
func obstructed(err error) bool {
	return errors.Is(err, errInTheWay) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EDQUOT)
}

// clean removes Python's byte code, which may not match its source, and makes the working directory if the agent removed it, so
// that the verifier can run and judge that as failed. It empties the shared memory if that belongs to the sandbox, as its files
// take memory that the verifier needs. Files in /tmp stay, as they may be the agent's work.
func clean(ctx context.Context, sb sandbox.Sandbox, layout sandbox.Layout, apart bool) error {
	var commands [][]string
	if apart {
		if shared, err := sb.Files().List(ctx, sharedMemory); err == nil && len(shared) > 0 {
			commands = append(commands, []string{"find", sharedMemory, "-xdev", "-mindepth", "1", "-delete"})
		}
	}
	info, err := sb.Files().Stat(ctx, layout.Workdir)
	gone := errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir()
	switch {
	case gone:
		commands = append(commands, []string{"rm", "-rf", "--", layout.Workdir}, []string{"mkdir", "-p", "--", layout.Workdir})
	case err != nil || mayHold(ctx, sb.Files(), info, isByteCode):
		commands = append(commands, []string{"find", layout.Workdir, "-name", byteCode, "-prune", "-exec", "rm", "-rf", "--", "{}", "+"})
	}
	for _, args := range commands {
		result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: args, Dir: path.Dir(layout.Tests)}, sandbox.RunOptions{})
		if err != nil {
			return fmt.Errorf("clean the working directory: %w", err)
		}
		if result.Exit.Code != 0 {
			return &Broken{Class: "files", Message: fmt.Sprintf("cannot clean up (%s): %s", strings.Join(args, " "), tail(string(result.Stderr.Bytes())))}
		}
	}
	return nil
}

const (
	byteCode     = "__pycache__"
	sharedMemory = "/dev/shm"
)

func isByteCode(entry sandbox.Info) bool { return entry.Name == byteCode }

// mayHold reports whether a directory may contain something that is wanted, at any depth. It searches only a few small directories,
// which costs less than a process in the sandbox; for larger trees it returns true.
func mayHold(ctx context.Context, files sandbox.Files, dir sandbox.Info, wanted func(sandbox.Info) bool) bool {
	const most, small = 8, 8 << 10 // directories, and the reported size of one in bytes
	queue := []sandbox.Info{dir}
	for i := 0; i < len(queue); i++ {
		if i == most || queue[i].Size > small {
			return true
		}
		entries, err := files.List(ctx, queue[i].Path)
		if err != nil {
			return true
		}
		for _, entry := range entries {
			if wanted(entry) {
				return true
			}
			if entry.Mode.IsDir() {
				queue = append(queue, entry)
			}
		}
	}
	return false
}

// late turns err into one about the verifier's deadline if that is the cause; errors about files are the verifier's, too.
func late(ctx context.Context, timeout time.Duration, err error) error {
	var broken *Broken
	switch {
	case errors.As(err, &broken) || errors.Is(err, sandbox.ErrGone):
		return err
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return &Broken{Class: "timeout", Message: fmt.Sprintf("verifier timed out after %s: %v", timeout, err)}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &Broken{Class: "files", Message: err.Error()}
}

// tail keeps the end of a verifier's output, where the verdict usually is.
func tail(text string) string {
	const most = 2000
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
