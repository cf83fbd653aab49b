package ssh_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Account is whom the server lets in. The zero value is whoever runs the test, with bash.
type Account struct {
	// UID is another user, whose name no other test uses. It takes root to let it in.
	UID int
	// Files are put into the home directory, such as ".bashrc". It takes root to have a home of one's own.
	Files map[string]string
	// HostKeys are kinds of key that the server has beside one of ed25519: ecdsa, rsa.
	HostKeys []string
	// Certificate has the server's key signed by an Authority.
	Certificate bool
}

// Server runs the machine's own sshd on loopback, one for each connection.
type Server struct {
	// Settings are those of the backend ssh that lead here.
	Settings map[string]string
	// Home is the home directory of the account.
	Home string
	// Other is whether the account is another user than us.
	Other bool
	// Authority signed the server's key, if asked to.
	Authority ssh.PublicKey

	dir      string
	program  []string
	listener net.Listener
	wait     sync.WaitGroup

	mu      sync.Mutex
	daemons map[*exec.Cmd]bool
	down    bool
}

const name = "sandboxtest"

// Start starts a server that ends with the test. An error means that there can be none here.
func Start(t testing.TB, account Account) (*Server, error) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		if sshd, err = exec.LookPath("/usr/sbin/sshd"); err != nil {
			return nil, fmt.Errorf("%w: install openssh-server", err)
		}
	}
	// Of the ways to it, each must be searchable by the account.
	dir, err := os.MkdirTemp("", "sshtest-*")
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{dir: dir, daemons: map[*exec.Cmd]bool{}, Other: account.UID != 0 && account.UID != os.Getuid()}
	login, err := s.prepare(account)
	if err != nil {
		return nil, err
	}
	s.program = append(s.program, sshd, "-i", "-e", "-f", filepath.Join(dir, "config"))
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if err := s.keys(login, account); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	s.wait.Go(func() { s.serve(t) })
	t.Cleanup(func() {
		s.listener.Close()
		s.Drop()
		s.wait.Wait()
	})
	return s, nil
}

// prepare makes the home directory. As root, the account is made in a mount namespace of the daemon's own, so that
// neither the machine's accounts nor root's home directory are touched.
func (s *Server) prepare(account Account) (login string, err error) {
	if os.Getuid() != 0 {
		if account.UID != 0 && account.UID != os.Getuid() || len(account.Files) > 0 {
			return "", errors.New("only root can let in another user")
		}
		me, err := user.Current()
		if err != nil {
			return "", err
		}
		s.Home = me.HomeDir
		return me.Username, nil
	}
	login, s.Home = "root", filepath.Join(s.dir, "home")
	if account.UID != 0 {
		login = name
	}
	passwd := fmt.Sprintf("%s:*:%d:%d::%s:/bin/bash\n", login, account.UID, account.UID, s.Home)
	if account.UID != 0 {
		passwd += "root:*:0:0::/nonexistent:/bin/false\n"
	}
	// sshd drops its privileges to the user sshd, and wants to see an empty directory.
	passwd += "sshd:*:65533:65534::/run/sshd:/usr/sbin/nologin\n"
	err = errors.Join(os.Chmod(s.dir, 0o755), os.Mkdir(s.Home, 0o700), os.WriteFile(filepath.Join(s.dir, "passwd"), []byte(passwd), 0o644), os.MkdirAll("/run/sshd", 0o755))
	for file, content := range account.Files {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.Home, file), []byte(content), 0o644))
	}
	s.program = []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/passwd && exec "$@"`, filepath.Join(s.dir, "passwd")}
	return login, errors.Join(err, os.Chown(s.Home, account.UID, account.UID))
}

// keys makes keys for each side, and shows them to the other.
func (s *Server) keys(login string, account Account) error {
	path := func(file string) string { return filepath.Join(s.dir, file) }
	client, err := newKey("ed25519", path("client"))
	if err != nil {
		return err
	}
	config := []string{
		"AuthorizedKeysFile " + path("authorized"), "PidFile none", "UsePAM no", "StrictModes no", "PermitRootLogin yes",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PrintLastLog no", "PrintMotd no",
	}
	address := s.listener.Addr().String()
	var known strings.Builder
	for _, kind := range append([]string{"ed25519"}, account.HostKeys...) {
		key, err := newKey(kind, path(kind))
		if err != nil {
			return err
		}
		config = append(config, "HostKey "+path(kind))
		fmt.Fprintln(&known, knownhosts.Line([]string{address}, key))
		if account.Certificate && kind == "ed25519" {
			if err := s.certify(key, path(kind+"-cert.pub")); err != nil {
				return err
			}
			config = append(config, "HostCertificate "+path(kind+"-cert.pub"))
		}
	}
	s.Settings = map[string]string{
		"host": login + "@" + address, "identity_file": path("client"), "known_hosts": path("known_hosts"),
	}
	if os.Getuid() != 0 {
		s.Settings["directory"] = path("agent")
	}
	return errors.Join(
		os.WriteFile(path("config"), []byte(strings.Join(config, "\n")+"\n"), 0o644),
		os.WriteFile(path("authorized"), ssh.MarshalAuthorizedKey(client), 0o644),
		os.WriteFile(path("known_hosts"), []byte(known.String()), 0o644),
	)
}

func (s *Server) certify(key ssh.PublicKey, file string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return err
	}
	s.Authority = signer.PublicKey()
	certificate := &ssh.Certificate{Key: key, CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, signer); err != nil {
		return err
	}
	return os.WriteFile(file, ssh.MarshalAuthorizedKey(certificate), 0o644)
}

func newKey(kind, file string) (ssh.PublicKey, error) {
	private, err := generate(kind)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(block), 0o600)
	}
	if err != nil {
		return nil, err
	}
	return ssh.NewPublicKey(private.Public())
}

func generate(kind string) (crypto.Signer, error) {
	switch kind {
	case "ed25519":
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("unknown kind of key %q (have ed25519, ecdsa, rsa)", kind)
}

// serve starts a daemon for each connection, as inetd does.
func (s *Server) serve(t testing.TB) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if err := s.daemon(conn); err != nil {
			t.Errorf("start sshd: %v", err)
		}
	}
}

func (s *Server) daemon(conn net.Conn) error {
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	defer file.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil
	}
	said, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	c := exec.Command(s.program[0], s.program[1:]...)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	c.Stdin, c.Stdout, c.Stderr = file, file, said
	if err := c.Start(); err != nil {
		return err
	}
	s.daemons[c] = true
	s.wait.Go(func() {
		_ = c.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.daemons, c)
	})
	return nil
}

// Log is what the daemons said.
func (s *Server) Log() string {
	content, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(content)
}

// Connections is how many there are.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.daemons)
}

// Drop cuts all connections, as a machine does that is switched off.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.daemons {
		_ = c.Process.Kill()
	}
}

// Stop makes the server close new connections at once, until it is told otherwise.
func (s *Server) Stop(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}
