// Package daytona runs each sandbox on a machine of Daytona, a service, through its REST API.
//
// Machines come from an image of a registry or a snapshot that Daytona has. The agent is uploaded into the machine and
// started on a terminal of the machine's toolbox, which is carried over a WebSocket: the one place in the API where bytes
// go in and out of a process as they are, once the terminal is raw. All else goes through the agent.
//
// Each machine bears a label of its runner's instance, by which a sweep ends those of dead ones. Without a sweep, too, a
// machine is deleted, some minutes after nobody is connected to it.
//
// Daytona drops a client that does not take a terminal's output for long, and the machine is lost to it.
//
// Tested against a server that speaks the protocol; not yet against the real service.
package daytona

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented"
)

const (
	name          = "daytona"
	defaultServer = "https://app.daytona.io/api"
	// snapshotPrefix tells Daytona's snapshots from images.
	snapshotPrefix = "snapshot:"
)

func init() {
	sandbox.Register(name, sandbox.Kind{
		About:    "machines of Daytona, a service: an image or a snapshot for each row",
		Open:     Open,
		Settings: settings,
		Sweep:    sweep,
	})
}

var settings = []sandbox.Setting{
	{Name: "api_key", Env: "DAYTONA_API_KEY", Secret: true, Help: "who you are, and the proof of it"},
	{Name: "api_url", Env: "DAYTONA_API_URL", Help: "address of the service; default " + defaultServer},
	{Name: "organization", Env: "DAYTONA_ORGANIZATION_ID", Help: "id of the organization; default is the key's"},
	{Name: "target", Env: "DAYTONA_TARGET", Help: "region of the machines; default is the organization's"},
	{Name: "image", Help: "image of sandboxes that name none, such as python:3.13-slim, or " + snapshotPrefix + "NAME; default is Daytona's snapshot"},
	{Name: "user", Help: "user that runs commands; default root, which the working directory and the verifier's place need"},
	{Name: "autostop", Help: "minutes until a machine is deleted that nobody is connected to; default 15"},
	{Name: "arch", Help: "what the machines are: amd64 (the default) or arm64"},
}

// config is what the settings say.
type config struct {
	key          string
	server       string
	organization string
	target       string
	image        string
	user         string
	autostop     int // minutes
	arch         string
}

func parse(values map[string]string) (config, error) {
	c := config{server: defaultServer, user: "root", autostop: 15, arch: "amd64"}
	var errs []error
	for key, value := range values {
		if !slices.ContainsFunc(settings, func(s sandbox.Setting) bool { return s.Name == key }) {
			errs = append(errs, fmt.Errorf("unknown setting %q (have %s)", key, strings.Join(names(), ", ")))
		}
		if value == "" {
			continue
		}
		switch key {
		case "api_key":
			c.key = value
		case "api_url":
			c.server = strings.TrimRight(value, "/")
		case "organization":
			c.organization = value
		case "target":
			c.target = value
		case "image":
			c.image = value
		case "user":
			c.user = value
		case "arch":
			if c.arch = value; value != "amd64" && value != "arm64" {
				errs = append(errs, fmt.Errorf("setting arch: %q is neither amd64 nor arm64", value))
			}
		case "autostop":
			var err error
			if c.autostop, err = strconv.Atoi(value); err != nil || c.autostop < 1 {
				errs = append(errs, fmt.Errorf("setting autostop: %q is not a number of minutes, at least 1", value))
			}
		}
	}
	if c.key == "" {
		errs = append(errs, errors.New("no credentials: set DAYTONA_API_KEY"))
	}
	if !strings.HasPrefix(c.server, "https://") && !strings.HasPrefix(c.server, "http://") {
		errs = append(errs, fmt.Errorf("setting api_url: %q does not begin with https:// or http://", c.server))
	}
	return c, errors.Join(errs...)
}

func names() []string {
	all := make([]string, len(settings))
	for i, s := range settings {
		all[i] = s.Name
	}
	return all
}

// Open shows the key to the service, and tests a machine of the image that the settings name.
func Open(opts sandbox.Options) (sandbox.Backend, error) {
	c, err := parse(opts.Settings)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return rented.Open(rented.Options{
		Backend: name, Guarantees: guarantees, StateDir: opts.StateDir, Settings: c.recorded(), Logger: opts.Logger,
		Service: func(mark string) (rented.Service, error) { return connect(context.Background(), c, mark, opts.Logger) },
	})
}

// recorded is what a sweep needs to know of a dead runner's settings.
func (c config) recorded() map[string]string {
	return map[string]string{"api_url": c.server, "organization": c.organization, "arch": c.arch}
}

// sweep deletes the machines of a dead runner. Secrets are never on disk, so they are taken from where they always are.
func sweep(ctx context.Context, instance sandbox.Instance) error {
	mark, values, err := rented.Marked(instance)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if s.Secret {
			values[s.Name] = os.Getenv(s.Env)
		}
	}
	c, err := parse(values)
	if err != nil {
		return err
	}
	s, err := connect(ctx, c, mark, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(s.Sweep(ctx), s.Close())
}

// guarantees are what Daytona says of its machines.
var guarantees = sandbox.Guarantees{
	Level: sandbox.LevelUser,
	Limits: map[string]string{
		sandbox.LimitMemory: "soft", sandbox.LimitCPU: "soft", sandbox.LimitDisk: "soft", sandbox.LimitFiles: "soft",
		sandbox.LimitProcesses: "none", sandbox.LimitInodes: "none",
	},
	Network: []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback, sandbox.NetworkFull},
	Images:  true,
	Missing: []string{
		"what isolates the machines is Daytona's word: from here it cannot be measured",
		"memory, disk and processors come in whole gigabytes and numbers, and with a snapshot they are the snapshot's",
		"an allow-list is not offered: use native, which knows names and ports",
		"no snapshots: in Daytona's API they are an experiment and of some machines alone",
	},
}
