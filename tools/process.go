package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/internal/chars"
	"trajgen/tools/internal/feed"
)

// Bounds of the process tool.
const (
	maxWait     = 180 // seconds
	pollOutput  = 1000
	waitOutput  = 2000
	listOutput  = 200
	logLines    = 200
	listCommand = 200
	killGrace   = 3 * time.Second
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "process", Toolset: terminalToolset,
		Description: "Follow and control the background processes that terminal(background=true) started. Actions: " +
			"list (all of them); poll (status and newest output); log (output by lines: the last 200, or from line offset " +
			"on, at most limit); wait (until it ends, at most timeout seconds); kill; write (data to its standard input); " +
			"submit (data and the Enter key); close (its standard input). All but list need session_id. The last 200,000 " +
			"characters of output are kept, stdout and stderr together. Every action also returns notifications, when there " +
			"are new ones, of processes started with notify_on_complete or watch_patterns.",
		Timeout:   (maxWait + 20) * time.Second,
		MaxResult: 8 * processOutput,
	}, manageProcess))
}

type processArgs struct {
	Action    string `json:"action" alias:"command,operation" doc:"What to do." enum:"list,poll,log,wait,kill,write,submit,close"`
	SessionID string `json:"session_id,omitempty" alias:"id,process_id,proc_id" doc:"The process, e.g. proc_1. For every action but list."`
	Data      string `json:"data,omitempty" alias:"input,text,stdin" doc:"Text for write and submit."`
	Timeout   int    `json:"timeout,omitempty" alias:"timeout_seconds,timeout_secs,timeout_s" doc:"Seconds to wait, at most 180 (the default)." min:"1"`
	Offset    int    `json:"offset,omitempty" doc:"First line of log, from 1; 0 or without it the last lines are shown." min:"0"`
	Limit     int    `json:"limit,omitempty" alias:"lines,max_lines,num_lines" doc:"Number of lines of log." min:"1" default:"200"`
}

// processResult is the result of every action on one process; fields that do not apply are left out.
type processResult struct {
	SessionID     string  `json:"session_id"`
	Command       string  `json:"command,omitempty"`
	Status        string  `json:"status"`
	ExitCode      *int    `json:"exit_code,omitempty"`
	OutputPreview *string `json:"output_preview,omitempty"`
	Output        *string `json:"output,omitempty"`
	TotalLines    *int    `json:"total_lines,omitempty"`
	Showing       string  `json:"showing,omitempty"`
	BytesWritten  *int    `json:"bytes_written,omitempty"`
	Message       string  `json:"message,omitempty"`
	TimeoutNote   string  `json:"timeout_note,omitempty"`
	// CompletionReason is exited, or killed by the process tool.
	CompletionReason string         `json:"completion_reason,omitempty"`
	Notifications    []notification `json:"notifications,omitempty"`
}

func manageProcess(ctx context.Context, env *registry.Env, args processArgs) (any, error) {
	table := processesOf(env.Session)
	if args.Action == "list" {
		return listProcesses(table), nil
	}
	p := table.find(args.SessionID)
	if p == nil {
		return nil, unknownProcess(table, args.SessionID)
	}
	reported := p.reported.Load()
	counted := env.InSandbox()
	result, err := p.act(ctx, args)
	counted()
	if err != nil {
		return nil, err
	}
	if !reported { // only this call reports it, so that an end is counted once
		env.ExitCode = result.ExitCode
	}
	result.Notifications = table.notifications()
	return result, nil
}

func (p *process) act(ctx context.Context, args processArgs) (processResult, error) {
	switch args.Action {
	case "poll":
		return p.poll(), nil
	case "log":
		return p.log(args.Offset, args.Limit), nil
	case "wait":
		return p.wait(ctx, args.Timeout)
	case "kill":
		return p.kill(ctx)
	case "write":
		return p.write(args.Data)
	case "submit":
		if p.tty {
			return p.write(args.Data + "\r") // what the Enter key sends
		}
		return p.write(args.Data + "\n")
	default:
		return p.closeInput()
	}
}

// notifications returns the unreported events of all processes.
func (t *processTable) notifications() []notification {
	var all []notification
	for _, p := range t.list() {
		all = append(all, p.watcher.take(p.id)...)
		if p.notify && p.ended() && !p.reported.Swap(true) {
			_, code := p.status()
			all = append(all, notification{SessionID: p.id, Type: "completed", ExitCode: code})
		}
	}
	return all
}

func unknownProcess(table *processTable, id string) error {
	have := []string{}
	for _, p := range table.list() {
		have = append(have, p.id)
	}
	message := fmt.Sprintf("no background process %q", id)
	switch {
	case id == "":
		message = "session_id is missing"
	case len(have) == 0:
		message += "; none was started"
	}
	if len(have) > 0 {
		message += "; there are " + strings.Join(have, ", ")
	}
	return &registry.Failure{Class: "not_found", Message: message, Extra: map[string]any{"status": "not_found"}}
}

type listedProcess struct {
	SessionID string `json:"session_id"`
	Command   string `json:"command"`
	Cwd       string `json:"cwd"`
	Status    string `json:"status"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	Preview   string `json:"output_preview"`
}

func listProcesses(table *processTable) any {
	list := []listedProcess{}
	for _, p := range table.list() {
		status, code := p.status()
		list = append(list, listedProcess{
			p.id, chars.First(p.command, listCommand, "..."), p.dir, status, code, *p.lastOutput(listOutput),
		})
	}
	return struct {
		Processes     []listedProcess `json:"processes"`
		Notifications []notification  `json:"notifications,omitempty"`
	}{list, table.notifications()}
}

// result returns the state. A result with the end replaces the notification of it.
func (p *process) result() processResult {
	status, code := p.status()
	r := processResult{SessionID: p.id, Status: status, ExitCode: code}
	if status != "running" {
		p.reported.Store(true)
	}
	if status == "exited" && p.killed.Load() {
		r.CompletionReason = "killed"
	}
	return r
}

// lastOutput returns the last characters of the output.
func (p *process) lastOutput(limit int) *string {
	return new(chars.Last(strings.TrimRight(string(p.output.snapshot().tail), " \t\r\n"), limit))
}

func (p *process) poll() processResult {
	r := p.result()
	r.Command = chars.First(p.command, listCommand, "...")
	r.OutputPreview = p.lastOutput(pollOutput)
	return r
}

// log returns whole lines. Their numbers count from the process's first line, even after trajgen has dropped that line.
func (p *process) log(offset, limit int) processResult {
	if limit < 1 {
		limit = logLines
	}
	kept := p.output.snapshot()
	lines, _ := splitLines(string(kept.tail))
	dropped := kept.lines
	total := dropped + len(lines)
	from := max(total-limit, dropped)
	if offset > 0 {
		from = min(max(offset-1, dropped), total)
	}
	to := min(from+limit, total)
	r := p.result()
	r.Output, r.TotalLines = new(strings.Join(lines[from-dropped:to-dropped], "\n")), &total
	if r.Showing = fmt.Sprintf("lines %d-%d of %d", from+1, to, total); from >= to {
		r.Showing = fmt.Sprintf("no lines of %d", total)
	}
	if dropped > 0 {
		r.Message = fmt.Sprintf("lines 1-%d are no longer kept", dropped)
	}
	return r
}

// wait returns when the process has ended, when a watched line comes, or when the time is over.
func (p *process) wait(ctx context.Context, seconds int) (processResult, error) {
	var note string
	if seconds > maxWait {
		note = fmt.Sprintf("waited for at most %d s instead of the %d s that were asked for", maxWait, seconds)
	}
	if seconds < 1 || seconds > maxWait {
		seconds = maxWait
	}
	limited, cancel := context.WithTimeoutCause(ctx, time.Duration(seconds)*time.Second, errTimedOut)
	defer cancel()
	limited, match := context.WithCancel(limited)
	defer match()
	defer p.watcher.waking(match)()
	_, err := p.proc.Wait(limited)
	if err == nil {
		<-p.done
	}
	if ctx.Err() != nil {
		return processResult{}, context.Cause(ctx)
	}
	r := p.result()
	if err != nil && limited.Err() == nil {
		return processResult{}, err
	}
	if err != nil && errors.Is(context.Cause(limited), errTimedOut) && !p.ended() {
		r.Status = "timeout"
		r.Message = fmt.Sprintf("still running after %d s", seconds)
	}
	r.Output, r.TimeoutNote = p.lastOutput(waitOutput), note
	return r, nil
}

func (p *process) kill(ctx context.Context) (processResult, error) {
	if p.ended() {
		r := p.result()
		r.Status = "already_exited"
		return r, nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	p.killed.Store(true)
	err := p.proc.Kill(ending, killGrace)
	if err == nil {
		select {
		case <-p.done:
		case <-ending.Done():
		}
	}
	if p.ended() {
		r := p.result()
		r.Status = "killed"
		return r, p.err // with an error, its outcome is unknown
	}
	p.killed.Store(false)
	if errors.Is(err, sandbox.ErrGone) {
		return processResult{}, err
	}
	return processResult{}, &registry.Failure{
		Class: "not_killed", Message: fmt.Sprintf("%s was sent a signal that kills, and has not ended within %s; poll it later", p.id, killTime),
		Extra: map[string]any{"session_id": p.id, "status": "running"},
	}
}

// write writes to the standard input.
func (p *process) write(data string) (processResult, error) {
	if p.ended() {
		return processResult{}, registry.Failf("exited", "process %s has ended", p.id)
	}
	n, err := io.WriteString(p.stdin, data)
	switch {
	case errors.Is(err, feed.ErrClosed):
		err = registry.Failf("stdin_closed", "the standard input of the process is closed")
	case errors.Is(err, feed.ErrFull):
		err = registry.Failf("stdin_full", "the process does not read its input: %d bytes of it can wait", maxInput)
	}
	return processResult{SessionID: p.id, Status: "ok", BytesWritten: &n}, err
}

// closeInput closes the standard input. A terminal cannot be closed: it gets the end-of-file character.
func (p *process) closeInput() (processResult, error) {
	r := processResult{SessionID: p.id, Status: "ok", Message: "standard input closed"}
	if !p.tty {
		p.stdin.Close()
		return r, nil
	}
	r.Message = "end of file sent to the terminal"
	_, err := p.write(endOfFile)
	return r, err
}
