package ssh

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// keys are what we log in with.
type keys struct {
	files                []string
	chosen               bool // by the user: each file must exist
	passphrase, password string
	socket               string // of an ssh-agent
}

// methods makes the methods for one connection, with a connection of its own to the ssh-agent.
func (k *keys) methods() (methods []ssh.AuthMethod, done func(), err error) {
	var helper agent.ExtendedAgent
	done = func() {}
	if k.socket != "" {
		// A socket left over from a dead ssh-agent is common, and not an error.
		if conn, err := net.Dial("unix", k.socket); err == nil {
			helper, done = agent.NewClient(conn), func() { conn.Close() }
		}
	}
	signers, err := k.load(helper != nil)
	if err != nil {
		done()
		return nil, nil, err
	}
	if helper != nil || len(signers) > 0 {
		// One method for all keys: of several methods with one name, the client tries the first only.
		methods = append(methods, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			if helper == nil {
				return signers, nil
			}
			held, err := helper.Signers()
			if err != nil && len(signers) == 0 {
				return nil, fmt.Errorf("ask the ssh-agent for its keys: %w", err)
			}
			return append(signers[:len(signers):len(signers)], held...), nil
		}))
	}
	if k.password != "" {
		methods = append(methods, ssh.Password(k.password), ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
			answers := make([]string, len(questions))
			for i := range answers {
				answers[i] = k.password
			}
			return answers, nil
		}))
	}
	if len(methods) == 0 {
		done()
		return nil, nil, fmt.Errorf("no key to log in with: none of %s can be used, and there is no ssh-agent; name one with the setting identity_file", strings.Join(k.files, ", "))
	}
	return methods, done, nil
}

func (k *keys) load(helped bool) ([]ssh.Signer, error) {
	var signers []ssh.Signer
	for _, name := range k.files {
		content, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && !k.chosen {
			continue
		}
		if err != nil {
			return nil, err
		}
		signer, err := ssh.ParsePrivateKey(content)
		var locked *ssh.PassphraseMissingError
		if errors.As(err, &locked) {
			if k.passphrase != "" {
				signer, err = ssh.ParsePrivateKeyWithPassphrase(content, []byte(k.passphrase))
			} else if helped || !k.chosen {
				continue // the ssh-agent may hold it
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read the key %s: %w", name, err)
		}
		signers = append(signers, signer)
	}
	return signers, nil
}

// hostKeys verify hosts.
type hostKeys struct {
	files    []string
	insecure bool
	check    ssh.HostKeyCallback
}

func (k *hostKeys) load() (err error) {
	if k.insecure {
		k.check = ssh.InsecureIgnoreHostKey()
		return nil
	}
	if len(k.files) == 0 {
		return errors.New("no known_hosts file, by which hosts are verified: connect once with ssh, or name one with the setting known_hosts")
	}
	verify, err := knownhosts.New(k.files...)
	if err != nil {
		return fmt.Errorf("read known_hosts: %w", err)
	}
	k.check = func(address string, remote net.Addr, key ssh.PublicKey) error {
		err := verify(address, remote, key)
		var wrong *knownhosts.KeyError
		switch {
		case errors.As(err, &wrong) && len(wrong.Want) == 0:
			return fmt.Errorf("the key of %s, %s, is not in %s; verify it and add it there: %w", address, ssh.FingerprintSHA256(key), strings.Join(k.files, " or "), err)
		case errors.As(err, &wrong):
			return fmt.Errorf("the key of %s, %s, is not the one in %s: another machine may stand between: %w", address, ssh.FingerprintSHA256(key), &wrong.Want[0], err)
		}
		return err
	}
	return nil
}

// algorithms returns those of the host's known keys, because a host shows only one of its keys. Nil leaves the choice to the
// host.
func (k *hostKeys) algorithms(address string) []string {
	if k.insecure {
		return nil
	}
	var known *knownhosts.KeyError
	if err := k.check(address, &net.TCPAddr{IP: net.IPv4zero}, noKey{}); !errors.As(err, &known) {
		return nil
	}
	var plain, certified []string
	for _, want := range known.Want {
		if isAuthority(want) {
			certified = []string{
				ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
				ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
			}
		} else if kind := want.Key.Type(); kind == ssh.KeyAlgoRSA {
			plain = append(plain, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			plain = append(plain, kind)
		}
	}
	return append(certified, plain...)
}

// isAuthority reads the key's line again, because knownhosts does not say whether it is of an authority.
func isAuthority(key knownhosts.KnownKey) bool {
	content, err := os.ReadFile(key.Filename)
	if err != nil {
		return false
	}
	lines := strings.Split(string(content), "\n")
	return key.Line <= len(lines) && strings.HasPrefix(strings.TrimSpace(lines[key.Line-1]), "@cert-authority")
}

// noKey is a key that no server has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

func existing(names ...string) []string {
	var found []string
	for _, name := range names {
		if _, err := os.Stat(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}
