package ssh

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"trajgen/sandbox"
)

var settings = []sandbox.Setting{
	{Name: "host", Help: "[USER@]HOST[:PORT] of the machine; several with commas share the sandboxes", Env: "TRAJGEN_SSH_HOST"},
	{Name: "identity_file", Help: "private key, several with commas (default: id_ed25519, id_ecdsa and id_rsa in .ssh)"},
	{Name: "passphrase", Help: "of the private keys", Env: "TRAJGEN_SSH_PASSPHRASE", Secret: true},
	{Name: "password", Help: "for hosts that take no key", Env: "TRAJGEN_SSH_PASSWORD", Secret: true},
	{Name: "auth_sock", Help: "socket of an ssh-agent that holds keys", Env: "SSH_AUTH_SOCK"},
	{Name: "known_hosts", Help: "files with the keys of hosts, with commas (default: .ssh/known_hosts and /etc/ssh/ssh_known_hosts)"},
	{Name: "insecure_host_key", Help: "true accepts any host key: a machine between can take the host's place"},
	{Name: "jump", Help: "[USER@]HOST[:PORT] to connect through; several, in order, with commas"},
	{Name: "isolation", Help: "native refuses hosts that cannot isolate; any (default) runs plain processes there and says so"},
	{Name: "directory", Help: "for the agent on the host, absolute (default: .cache/trajgen in the home directory there)"},
	{Name: "home", Help: "directory whose .ssh holds keys and known_hosts", Env: "HOME"},
}

// config is the parsed settings.
type config struct {
	targets, jumps []target
	native         bool   // refuse hosts that cannot isolate
	directory      string // for the agent, on the host; "" is the default
	keys           *keys
	hostKeys       *hostKeys
}

// target is an address, and the user to log in as.
type target struct{ user, address string }

func (t target) String() string { return t.user + "@" + t.address }

func parse(values map[string]string, logger *slog.Logger) (*config, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	targets := func(name string) (all []target) {
		for _, text := range split(values[name]) {
			t, err := parseTarget(text, me.Username)
			if err != nil {
				fail("setting %s: %w", name, err)
			}
			all = append(all, t)
		}
		return all
	}
	home := values["home"]
	if home == "" {
		home = me.HomeDir
	}
	c := &config{
		targets: targets("host"), jumps: targets("jump"), directory: values["directory"],
		keys: &keys{
			files: split(values["identity_file"]), chosen: values["identity_file"] != "",
			passphrase: values["passphrase"], password: values["password"], socket: values["auth_sock"],
		},
		hostKeys: &hostKeys{files: split(values["known_hosts"])},
	}
	if len(c.targets) == 0 && values["host"] == "" {
		fail("setting host is missing: [USER@]HOST[:PORT] of a machine")
	}
	if !c.keys.chosen {
		for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			c.keys.files = append(c.keys.files, filepath.Join(home, ".ssh", name))
		}
	}
	if values["known_hosts"] == "" {
		c.hostKeys.files = existing(filepath.Join(home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts")
	}
	if c.directory != "" && (!strings.HasPrefix(c.directory, "/") || strings.ContainsAny(c.directory, "'\"$`\\!\n\x00")) {
		fail("setting directory: %q is not an absolute path without quotes and the like", c.directory)
	}
	switch values["isolation"] {
	case "", "any":
	case "native":
		c.native = true
	default:
		fail("setting isolation: unknown value %q (have native, any)", values["isolation"])
	}
	if text := values["insecure_host_key"]; text != "" {
		insecure, err := strconv.ParseBool(text)
		if err != nil {
			fail("setting insecure_host_key: %q is neither true nor false", text)
		}
		if c.hostKeys.insecure = insecure; insecure {
			logger.Warn("host keys are not verified: a machine between can take a host's place", "hosts", values["host"])
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, c.hostKeys.load()
}

func parseTarget(text, user string) (target, error) {
	t := target{user: user, address: text}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		t.user, t.address = text[:at], text[at+1:]
	}
	name, port, err := net.SplitHostPort(t.address)
	if err != nil {
		name, port = strings.TrimSuffix(strings.TrimPrefix(t.address, "["), "]"), "22"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || name == "" || t.user == "" || strings.ContainsAny(name, " /[]") {
		return t, fmt.Errorf("%q is not [USER@]HOST[:PORT]", text)
	}
	t.address = net.JoinHostPort(name, port)
	return t, nil
}

func split(list string) []string {
	var all []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// clientConfig returns the configuration of one connection. done frees the keys' resources.
func (c *config) clientConfig(t target) (config *ssh.ClientConfig, done func(), err error) {
	methods, done, err := c.keys.methods()
	if err != nil {
		return nil, nil, err
	}
	return &ssh.ClientConfig{
		User: t.user, Auth: methods, HostKeyCallback: c.hostKeys.check, HostKeyAlgorithms: c.hostKeys.algorithms(t.address),
	}, done, nil
}
