package ssh

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/agent"
)

// A login shell may print anything before it runs a command, so each answer follows a line that marks it.
const (
	markSystem = "trajgen-system"
	markAbsent = "trajgen-agent-absent"
	markStored = "trajgen-agent-stored"
	markAgent  = "trajgen-agent-starts"

	// noise bounds the output before such a line, in bytes.
	noise = 1 << 20
)

// remote quotes a script for any login shell: within single quotes, all shells agree about everything but backslashes,
// exclamation marks and line ends.
func (c *config) remote(script string) string {
	directory := `"${XDG_CACHE_HOME:-$HOME/.cache}/trajgen"`
	if c.directory != "" {
		directory = `"` + c.directory + `"`
	}
	return "exec sh -c '" + strings.ReplaceAll("d="+directory+"; "+script, "\n", " ") + "'"
}

// startAgent starts the agent for the host's architecture, and uploads it first if it is missing.
func startAgent(r route, h *host) (*agentSession, error) {
	program, err := agentFor(r.last(), h.config)
	if err != nil {
		return nil, err
	}
	a, err := program.start(r, h)
	if !errors.Is(err, errAbsent) {
		return a, err
	}
	h.logger.Info("upload the agent", "bytes", len(program.content))
	if err := program.upload(r.last(), h.config); err != nil {
		return nil, fmt.Errorf("upload the agent: %w", err)
	}
	return program.start(r, h)
}

// agentProgram is the agent for one architecture.
type agentProgram struct {
	content []byte
	name    string
}

func agentFor(client *ssh.Client, c *config) (*agentProgram, error) {
	out, err := run(client, c.remote(`printf "\n%s\n" `+markSystem+`; uname -s; uname -m`), nil, markSystem)
	if err != nil {
		return nil, fmt.Errorf("ask the host what it is: %w", err)
	}
	fields := strings.Fields(out)
	arch := map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
	if len(fields) < 2 || fields[0] != "Linux" || arch[fields[1]] == "" {
		return nil, fmt.Errorf("the host is %q, and the agent is for Linux on x86_64 and aarch64", strings.Join(fields, " "))
	}
	content, err := sandbox.Agent(arch[fields[1]])
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	return &agentProgram{content: content, name: "agent-" + hex.EncodeToString(sum[:12])}, nil
}

// upload stores the agent under its final name atomically, and removes agents that were not used for a month. Of concurrent
// uploads the first wins: the file of a running agent must stay, because its sandboxes show it.
func (p *agentProgram) upload(client *ssh.Client, c *config) error {
	script := fmt.Sprintf(`umask 077; t="$d/.upload-%s"; a="$d/%s"; clean() { rm -f "$t"; }; trap clean EXIT;
mkdir -p "$d" && cat > "$t" && [ $(wc -c < "$t") -eq %d ] && chmod 755 "$t" &&
{ ln "$t" "$a" 2>/dev/null || [ -x "$a" ] || mv -f "$t" "$a"; } && printf "\n%%s\n" %s;
find "$d" "(" -name "agent-*" -mtime +30 -o -name ".upload-*" -mtime +1 ")" -exec rm -f "{}" ";" 2>/dev/null; exit 0`,
		rand.Text(), p.name, len(p.content), markStored)
	_, err := run(client, c.remote(script), bytes.NewReader(p.content), markStored)
	return err
}

// run runs a script to its end and returns the output after the mark.
func run(client *ssh.Client, command string, stdin io.Reader, mark string) (string, error) {
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	stdout, stderr := sandbox.NewCapture(noise, 0), sandbox.NewCapture(4<<10, 4<<10)
	session.Stdin, session.Stdout, session.Stderr = stdin, &silencer{stdout, session}, stderr
	err = session.Run(command)
	if stdout.Omitted() > 0 {
		return "", errNoise
	}
	_, answer, ok := strings.Cut("\n"+string(stdout.Bytes()), "\n"+mark+"\n")
	if ok && err == nil {
		return answer, nil
	}
	if err == nil {
		err = errors.New("it ended without an answer")
	}
	return "", fmt.Errorf("%w; the host said %q", err, strings.TrimSpace(string(stderr.Bytes())))
}

// silencer ends a session that prints more than may be kept.
type silencer struct {
	*sandbox.Capture
	session *ssh.Session
}

func (s *silencer) Write(p []byte) (int, error) {
	n, err := s.Capture.Write(p)
	if s.Omitted() > 0 {
		_ = s.session.Close()
		return 0, errNoise
	}
	return n, err
}

var errNoise = fmt.Errorf("the login shell printed more than %d bytes of its own", noise)

var errAbsent = errors.New("the agent is not on the host")

// start starts the agent.
func (p *agentProgram) start(r route, h *host) (*agentSession, error) {
	args := "host --plain-ok"
	if h.config.native {
		args = "host"
	}
	session, err := r.last().NewSession()
	if err != nil {
		return nil, err
	}
	a := &agentSession{
		route: r, ended: make(chan struct{}), finished: make(chan struct{}),
		stderr: agent.NewStderr(h.logger),
	}
	session.Stderr = a.stderr
	stdout, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if a.stdin, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	a.stdout = bufio.NewReaderSize(stdout, 64<<10)
	script := fmt.Sprintf(`a="$d/%s"; if [ -x "$a" ]; then touch "$a" 2>/dev/null; printf "\n%%s\n" %s; exec "$a" trajgen-helper agent %s; fi; printf "\n%%s\n" %s`, p.name, markAgent, args, markAbsent)
	if err := session.Start(h.config.remote(script)); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	mark, err := a.findMark()
	if err == nil && mark == markAgent {
		go func() {
			defer close(a.ended)
			_ = session.Wait()
		}()
		return a, nil
	}
	failure := session.Wait()
	if mark == markAbsent {
		return nil, errAbsent
	}
	return nil, fmt.Errorf("start the agent: %w; the host said %q", errors.Join(err, failure), a.said())
}

// agentSession is the agent's input and output, and the connection that they go through.
type agentSession struct {
	route  route
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *agent.Stderr
	ended  chan struct{} // closed when the agent or the connection has ended

	closing  sync.Once
	finished chan struct{} // closed when the connection has ended and err is set
	err      error
}

func (a *agentSession) findMark() (string, error) {
	for read := 0; read < noise; {
		line, err := a.stdout.ReadSlice('\n')
		read += len(line)
		switch text := strings.TrimSuffix(string(line), "\n"); text {
		case markAgent, markAbsent:
			return text, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", fmt.Errorf("the login shell ended before the agent began: %w", err)
		}
	}
	return "", errNoise
}

func (a *agentSession) said() string { return a.stderr.Text() }

func (a *agentSession) Read(p []byte) (int, error) { return a.stdout.Read(p) }

func (a *agentSession) Write(p []byte) (int, error) { return a.stdin.Write(p) }

// Close ends the agent and does not wait for it, because the host may hang.
func (a *agentSession) Close() error {
	a.closing.Do(func() {
		go a.finish()
	})
	return nil
}

// finish closes the agent's input, gives the agent time to clean up, and closes the connection.
func (a *agentSession) finish() {
	defer close(a.finished)
	timer := time.AfterFunc(closeTime, func() { a.route.Close() }) // otherwise a host that hangs would keep both open
	defer timer.Stop()
	_ = a.stdin.Close()
	<-a.ended
	a.err = a.route.Close()
}

// wait waits until what Close began has ended.
func (a *agentSession) wait() error {
	<-a.finished
	return a.err
}
