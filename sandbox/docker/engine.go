package docker

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
)

// Names of settings.
const (
	settingHost         = "host"
	settingCertificates = "certificates"
	settingImage        = "image"
	settingRuntime      = "runtime"
	settingNetwork      = "network"
)

func settings(name string) []sandbox.Setting {
	host := map[string]string{"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}[name]
	return []sandbox.Setting{
		{Name: settingHost, Env: host, Help: "address of the engine, such as unix:///run/user/1000/docker.sock or tcp://10.0.0.5:2376 (default: its usual socket)"},
		{Name: settingCertificates, Env: "DOCKER_CERT_PATH", Help: "directory with ca.pem, cert.pem and key.pem, for an engine on the network"},
		{Name: settingImage, Help: "image of tasks that name none"},
		{Name: settingRuntime, Help: "runtime of the engine to use, such as runsc (default: the engine's)"},
		{Name: settingNetwork, Help: "the engine's network for sandboxes with full network (default: its bridge)"},
	}
}

// engine is a connection to docker or podman.
type engine struct {
	*client.Client
	info   system.Info
	podman bool // whatever the backend's name
}

// connect finds the engine and asks for its version.
func connect(ctx context.Context, name string, settings map[string]string) (*engine, error) {
	host := settings[settingHost]
	if host == "" {
		host = usualHost(name, os.Getuid())
	}
	said := fmt.Sprintf("(is it running? the setting %q of the %s backend says where)", settingHost, name)
	if at, err := url.Parse(host); err != nil || at.Scheme == "ssh" {
		return nil, fmt.Errorf("%s engine at %q: an address begins with unix:// or tcp:// (over ssh, forward the engine's socket, or use the ssh backend)", name, host)
	}
	options := []client.Opt{client.WithHost(host), client.WithUserAgent("trajgen")}
	if dir := settings[settingCertificates]; dir != "" && !strings.HasPrefix(host, "unix:") {
		options = append(options, client.WithTLSClientConfig(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")))
	}
	c, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("%s engine at %s: %w", name, host, err)
	}
	e := &engine{Client: c}
	if err := e.ask(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reach the %s engine at %s %s: %w", name, host, said, err), c.Close())
	}
	return e, nil
}

func (e *engine) ask(ctx context.Context) error {
	if _, err := e.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return err
	}
	version, err := e.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return err
	}
	for _, c := range version.Components {
		e.podman = e.podman || c.Name == "Podman Engine"
	}
	info, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return err
	}
	if e.info = info.Info; e.info.OSType != "linux" && e.info.OSType != "" {
		return fmt.Errorf("it runs containers of %s (want linux)", e.info.OSType)
	}
	return nil
}

// usualHost is where an engine listens by default: the machine's, or the user's own.
func usualHost(name string, uid int) string {
	user := "/run/user/" + strconv.Itoa(uid)
	sockets := []string{"/var/run/docker.sock", user + "/docker.sock"}
	if name == "podman" {
		sockets = []string{"/run/podman/podman.sock", user + "/podman/podman.sock"}
		if uid != 0 {
			sockets[0], sockets[1] = sockets[1], sockets[0]
		}
	}
	for _, socket := range sockets {
		if _, err := os.Stat(socket); err == nil {
			return "unix://" + socket
		}
	}
	return "unix://" + sockets[0]
}

// goarch translates the architecture names of engines and images.
func goarch(name string) string {
	switch name {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return name
}
