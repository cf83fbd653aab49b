package messages_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// postOffice is a server that takes mail.
type postOffice struct {
	address string

	mu  sync.Mutex
	log strings.Builder
}

func (p *postOffice) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func serveMail(t *testing.T) *postOffice {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &postOffice{address: listener.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.serve(conn)
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return p
}

func (p *postOffice) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "220 post.example ESMTP\r\n")
	lines, inside := bufio.NewScanner(conn), false
	for lines.Scan() {
		line := lines.Text()
		p.mu.Lock()
		p.log.WriteString(line + "\n")
		p.mu.Unlock()
		switch {
		case inside && line == ".":
			inside = false
			fmt.Fprint(conn, "250 taken\r\n")
		case inside:
		case strings.HasPrefix(line, "EHLO"):
			fmt.Fprint(conn, "250-post.example\r\n250-AUTH PLAIN\r\n250 8BITMIME\r\n")
		case strings.HasPrefix(line, "AUTH"):
			fmt.Fprint(conn, "235 welcome\r\n")
		case line == "DATA":
			inside = true
			fmt.Fprint(conn, "354 go on\r\n")
		case line == "QUIT":
			fmt.Fprint(conn, "221 bye\r\n")
			return
		default:
			fmt.Fprint(conn, "250 ok\r\n")
		}
	}
}
