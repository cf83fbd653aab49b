// Package modal runs each sandbox on a machine of Modal, a service.
//
// Machines are made from an image of a registry, or of Modal (im-...). The agent is written into the machine and started as a
// command, whose standard input and output carry everything else. For an image that is used again, Modal keeps a layer with the
// agent in it. Snapshots are Modal's snapshots of the file system.
//
// Each machine has a tag of its runner's instance, by which a sweep finds machines of dead runners. Even without a sweep, a
// machine ends: some minutes after its agent, or after the setting timeout. Modal deletes a dead runner's snapshots and layers
// after a week.
//
// The tests use a server that speaks the protocol; the real service is not tested yet.
package modal

import (
	"cmp"
	"errors"
	"fmt"
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
	sandbox.Register(name, rented.Provider{
		Name: name, About: "machines of Modal, a service: gVisor, an image for each row, snapshots",
		Settings: settings, Guarantees: guarantees, Connect: connect,
	}.Kind())
}

var settings = []sandbox.Setting{
	{Name: "token_id", Env: "MODAL_TOKEN_ID", Secret: true, Help: "id of the API token"},
	{Name: "token_secret", Env: "MODAL_TOKEN_SECRET", Secret: true, Help: "and the proof of it"},
	{Name: "server_url", Env: "MODAL_SERVER_URL", Help: "address of the service; default " + defaultServer},
	{Name: "environment", Env: "MODAL_ENVIRONMENT", Help: "environment of the workspace; default is the workspace's"},
	{Name: "app", Help: "app that the machines belong to, made if need be; default trajgen"},
	{Name: "image", Help: "image of sandboxes that name none: of a registry, or one that Modal has (im-...); default " + defaultImage},
	{Name: "timeout", Help: "when a machine ends, such as 2h; at most and by default 24h"},
	rented.Arch,
}

// config is the parsed settings.
type config struct {
	tokenID, tokenSecret string
	server               string
	environment          string
	app                  string
	image                string
	timeout              time.Duration
	agent                rented.Agent
}

func parse(values map[string]string) (config, error) {
	c := config{
		tokenID: values["token_id"], tokenSecret: values["token_secret"],
		server: cmp.Or(values["server_url"], defaultServer), environment: values["environment"],
		app: cmp.Or(values["app"], "trajgen"), image: cmp.Or(values["image"], defaultImage), timeout: longest,
	}
	var errs []error
	if c.tokenID == "" || c.tokenSecret == "" {
		errs = append(errs, errors.New("no credentials: set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"))
	}
	errs = append(errs, rented.CheckURL("server_url", c.server))
	if value := values["timeout"]; value != "" {
		var err error
		if c.timeout, err = time.ParseDuration(value); err != nil || c.timeout < time.Minute || c.timeout > longest {
			errs = append(errs, fmt.Errorf("setting timeout: %q is not a duration between 1m and 24h", value))
		}
	}
	var err error
	c.agent, err = rented.NewAgent(values[rented.Arch.Name])
	return c, errors.Join(append(errs, err)...)
}

// guarantees are those that Modal states for its machines.
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
