//go:build linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
)

// networkHelper does in a sandbox what no common program does.
func networkHelper(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(stderr, err)
		return 1
	}
	what, address := args[0], args[1]
	dial := func() (net.Conn, error) { return net.DialTimeout("tcp", address, 5*time.Second) }
	switch what {
	case "half-close":
		c, err := dial()
		if err != nil {
			return fail(err)
		}
		if _, err = c.Write([]byte("12345")); err == nil {
			err = c.(*net.TCPConn).CloseWrite()
		}
		answer, readErr := io.ReadAll(c)
		if err = errors.Join(err, readErr); err != nil {
			return fail(err)
		}
		stdout.Write(answer)
	case "drain":
		c, err := dial()
		if err != nil {
			return fail(err)
		}
		begin := time.Now()
		n, err := io.Copy(io.Discard, c)
		if err != nil {
			return fail(err)
		}
		fmt.Fprintln(stdout, n, time.Since(begin).Microseconds())
	case "many":
		count, _ := strconv.Atoi(args[2])
		errs := make(chan error, count)
		conns := make([]net.Conn, count)
		for i := range conns {
			go func() {
				var err error
				if conns[i], err = dial(); err == nil {
					_, err = conns[i].Write([]byte("x"))
				}
				if err == nil {
					_, err = io.ReadFull(conns[i], make([]byte, 1))
				}
				errs <- err
			}()
		}
		failed := 0
		for range count {
			if err := <-errs; err != nil {
				failed++
			}
		}
		fmt.Fprintln(stdout, failed)
	case "latency":
		// The time of connecting and of getting one byte back, in microseconds: the median of 100.
		var times []int64
		for range 100 {
			begin := time.Now()
			c, err := dial()
			if err != nil {
				return fail(err)
			}
			if _, err = c.Write([]byte("x")); err == nil {
				_, err = io.ReadFull(c, make([]byte, 1))
			}
			if err != nil {
				return fail(err)
			}
			times = append(times, time.Since(begin).Microseconds())
			c.Close()
		}
		slices.Sort(times)
		fmt.Fprintln(stdout, times[50])
	case "flood":
		for range 8 {
			go func() {
				for {
					if c, err := net.Dial("tcp", address); err == nil {
						c.Close()
					}
				}
			}()
		}
		select {}
	case "udp":
		c, err := net.Dial("udp", address)
		if err != nil {
			return fail(err)
		}
		begin := time.Now()
		_ = c.SetDeadline(begin.Add(5 * time.Second))
		_, _ = c.Write([]byte("x"))
		_, err = c.Read(make([]byte, 1))
		fmt.Fprintln(stdout, err, time.Since(begin) < time.Second)
	case "hold":
		c, err := dial()
		if err != nil {
			return fail(err)
		}
		fmt.Fprintln(stdout, "connected")
		_, _ = io.Copy(io.Discard, c)
	case "say":
		c, err := dial()
		if err != nil {
			return fail(err)
		}
		if _, err := io.WriteString(c, args[2]); err != nil {
			return fail(err)
		}
		_ = c.SetDeadline(time.Now().Add(3 * time.Second))
		answer, err := io.ReadAll(c)
		fmt.Fprintf(stdout, "%s", answer)
		if err != nil {
			return fail(err)
		}
	}
	return 0
}

// networked is a sandbox to try things in.
type networked struct {
	*testing.T
	sandbox.Sandbox
}

func (n networked) run(cmd sandbox.Command) (string, string, int) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), time.Minute)
	defer cancel()
	r, err := sandbox.Run(ctx, n, cmd, sandbox.RunOptions{})
	if err != nil {
		n.Fatal(err)
	}
	if r.TimedOut {
		n.Fatalf("%v: out of time", cmd.Args)
	}
	return strings.TrimSpace(string(r.Stdout.Bytes())), strings.TrimSpace(string(r.Stderr.Bytes())), r.Exit.Code
}

func (n networked) helper(args ...string) string {
	n.Helper()
	out, stderr, code := n.run(sandbox.Command{Helper: "test-network", Args: args})
	if code != 0 {
		n.Fatalf("%v: exit %d, %q, %q", args, code, out, stderr)
	}
	return out
}

// curl returns what it prints and its exit code: 6 is a name that was not found, 7 no connection, 28 out of time, 35, 52 and
// 56 a connection that was cut.
func (n networked) curl(args ...string) (string, int) {
	n.Helper()
	args = append([]string{"/usr/bin/curl", "-sS", "-m", "5", "--cacert", "/tmp/ca.pem"}, args...)
	out, _, code := n.run(sandbox.Command{Args: args})
	return out, code
}

func (n networked) last() sandbox.Connection {
	n.Helper()
	all := n.Sandbox.(sandbox.Traffic).Connections()
	if len(all) == 0 {
		n.Fatal("no connection is listed")
	}
	return all[len(all)-1]
}
