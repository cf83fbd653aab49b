// Package modal runs each sandbox on a machine of Modal, a service.
//
// Machines come from an image of a registry, or one that Modal has (im-...). The agent is written into the machine and
// started on the standard input and output of one command; all else goes through it. For an image that is asked for
// again, a layer with the agent in it is sealed once. Snapshots are Modal's of the file system.
//
// Each machine bears a tag of its runner's instance, by which a sweep ends those of dead ones. Without a sweep, too, a
// machine ends: some minutes after its agent, or when the setting timeout says. What a dead runner had sealed, Modal deletes
// after a week.
//
// Tested against a server that speaks the protocol; not yet against the real service.
package modal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented"
)

const (
	name         = "modal"
	defaultImage = "python:3.13-slim"
)

// longest is how long Modal lets a machine live.
const longest = 24 * time.Hour

func init() {
	sandbox.Register(name, sandbox.Kind{
		About:    "machines of Modal, a service: gVisor, an image for each row, snapshots",
		Open:     Open,
		Settings: settings,
		Sweep:    sweep,
	})
}

var settings = []sandbox.Setting{
	{Name: "token_id", Env: "MODAL_TOKEN_ID", Secret: true, Help: "who you are"},
	{Name: "token_secret", Env: "MODAL_TOKEN_SECRET", Secret: true, Help: "and the proof of it"},
	{Name: "server_url", Env: "MODAL_SERVER_URL", Help: "address of the service; default " + defaultServer},
	{Name: "environment", Env: "MODAL_ENVIRONMENT", Help: "environment of the workspace; default is the workspace's"},
	{Name: "app", Help: "app that the machines belong to, made if need be; default trajgen"},
	{Name: "image", Help: "image of sandboxes that name none: of a registry, or one that Modal has (im-...); default " + defaultImage},
	{Name: "timeout", Help: "when a machine ends, such as 2h; at most and by default 24h"},
	{Name: "arch", Help: "what the machines are: amd64 (the default) or arm64"},
}

// config is what the settings say.
type config struct {
	tokenID, tokenSecret string
	server               string
	environment          string
	app                  string
	image                string
	timeout              time.Duration
	arch                 string
}

func parse(values map[string]string) (config, error) {
	c := config{server: defaultServer, app: "trajgen", image: defaultImage, timeout: longest, arch: "amd64"}
	var errs []error
	for key, value := range values {
		if !slices.ContainsFunc(settings, func(s sandbox.Setting) bool { return s.Name == key }) {
			errs = append(errs, fmt.Errorf("unknown setting %q (have %s)", key, strings.Join(names(), ", ")))
		}
		if value == "" {
			continue
		}
		switch key {
		case "token_id":
			c.tokenID = value
		case "token_secret":
			c.tokenSecret = value
		case "server_url":
			c.server = value
		case "environment":
			c.environment = value
		case "app":
			c.app = value
		case "image":
			c.image = value
		case "arch":
			if c.arch = value; value != "amd64" && value != "arm64" {
				errs = append(errs, fmt.Errorf("setting arch: %q is neither amd64 nor arm64", value))
			}
		case "timeout":
			var err error
			if c.timeout, err = time.ParseDuration(value); err != nil || c.timeout < time.Minute || c.timeout > longest {
				errs = append(errs, fmt.Errorf("setting timeout: %q is not a duration between 1m and 24h", value))
			}
		}
	}
	if c.tokenID == "" || c.tokenSecret == "" {
		errs = append(errs, errors.New("no credentials: set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"))
	}
	if !strings.HasPrefix(c.server, "https://") && !strings.HasPrefix(c.server, "http://") {
		errs = append(errs, fmt.Errorf("setting server_url: %q does not begin with https:// or http://", c.server))
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

// Open shows the credentials to the service, finds the app and tests a machine of the image that the settings name.
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
	return map[string]string{"server_url": c.server, "environment": c.environment, "app": c.app, "arch": c.arch}
}

// sweep ends the machines of a dead runner. Secrets are never on disk, so they are taken from where they always are.
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

// guarantees are what Modal says of its machines.
var guarantees = sandbox.Guarantees{
	Level: sandbox.LevelUser,
	Limits: map[string]string{
		sandbox.LimitMemory: "soft", sandbox.LimitCPU: "soft", sandbox.LimitFiles: "soft",
		sandbox.LimitProcesses: "none", sandbox.LimitDisk: "none", sandbox.LimitInodes: "none",
	},
	Network:   []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback, sandbox.NetworkFull},
	Images:    true,
	Snapshots: true,
	Missing: []string{
		"what isolates the machines is Modal's word: from here it cannot be measured",
		"a sandbox that exceeds its memory may end as a whole, and Modal limits neither processes nor disk by request",
		"an allow-list is not offered: use native, which knows names and ports",
	},
}
