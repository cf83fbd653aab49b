package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// ServerProcess is a server in a process of its own, so that its cost is not counted.
type ServerProcess struct {
	Addrs []string
	PID   int

	cmd   *exec.Cmd
	stdin io.Closer
}

// StartServer starts one that listens on so many ports.
func StartServer(ctx context.Context, itself string, ports int, warnings io.Writer) (*ServerProcess, error) {
	cmd := exec.CommandContext(ctx, itself, "serve", "--ports", strconv.Itoa(ports))
	cmd.Stderr = warnings
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	s := &ServerProcess{PID: cmd.Process.Pid, cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server does not say where it listens: %w", err), s.Close())
	}
	s.Addrs = strings.Fields(line)
	return s, nil
}

// Close ends the server, which waits for no client.
func (s *ServerProcess) Close() error {
	return errors.Join(s.stdin.Close(), s.cmd.Wait())
}

// Reset has the server count anew.
func (s *ServerProcess) Reset(ctx context.Context) error { return s.get(ctx, "/reset", &struct{}{}) }

// Counts is what it saw since then.
func (s *ServerProcess) Counts(ctx context.Context) (c Counts, err error) {
	err = s.get(ctx, "/counts", &c)
	return c, err
}

func (s *ServerProcess) get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addrs[0]+path, nil)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}
