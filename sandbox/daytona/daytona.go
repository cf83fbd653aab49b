// Package daytona runs each sandbox on a machine of Daytona, a service, through its REST API.
//
// Machines are made from an image of a registry or a snapshot in Daytona. The agent is uploaded to the machine and started on a
// terminal of the machine's toolbox, over a WebSocket: once the terminal is raw, this is the one place in the API where bytes
// go in and out of a process unchanged. The agent does everything else.
//
// Each machine has a label of its runner's instance, by which a sweep finds machines of dead runners. Even without a sweep, a
// machine is deleted some minutes after the last connection to it.
//
// Daytona disconnects a client that does not read a terminal's output for long; the sandbox is lost then.
//
// The tests use a server that speaks the protocol; the real service is not tested yet.
package daytona

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented"
)

const (
	name          = "daytona"
	defaultServer = "https://app.daytona.io/api"
	// snapshotPrefix marks snapshots of Daytona in the setting image.
	snapshotPrefix = "snapshot:"
)

func init() {
	sandbox.Register(name, rented.Provider{
		Name: name, About: "machines of Daytona, a service: an image or a snapshot for each row",
		Settings: settings, Guarantees: guarantees, Connect: connect,
	}.Kind())
}

var settings = []sandbox.Setting{
	{Name: "api_key", Env: "DAYTONA_API_KEY", Secret: true, Help: "API key of the account"},
	{Name: "api_url", Env: "DAYTONA_API_URL", Help: "address of the service; default " + defaultServer},
	{Name: "organization", Env: "DAYTONA_ORGANIZATION_ID", Help: "id of the organization; default is the key's"},
	{Name: "target", Env: "DAYTONA_TARGET", Help: "region of the machines; default is the organization's"},
	{Name: "image", Help: "image of sandboxes that name none, such as python:3.13-slim, or " + snapshotPrefix + "NAME; default is Daytona's snapshot"},
	{Name: "user", Help: "user that runs commands; default root, which the working directory and the verifier's place need"},
	{Name: "autostop", Help: "minutes without a connection until a machine is deleted; default 15"},
	rented.Arch,
}

// config is the parsed settings.
type config struct {
	key          string
	server       string
	organization string
	target       string
	image        string
	user         string
	autostop     int // minutes
	agent        rented.Agent
}

func parse(values map[string]string) (config, error) {
	c := config{
		key: values["api_key"], server: strings.TrimRight(cmp.Or(values["api_url"], defaultServer), "/"),
		organization: values["organization"], target: values["target"],
		image: values["image"], user: cmp.Or(values["user"], "root"), autostop: 15,
	}
	var errs []error
	if c.key == "" {
		errs = append(errs, errors.New("no credentials: set DAYTONA_API_KEY"))
	}
	errs = append(errs, rented.CheckURL("api_url", c.server))
	if value := values["autostop"]; value != "" {
		var err error
		if c.autostop, err = strconv.Atoi(value); err != nil || c.autostop < 1 {
			errs = append(errs, fmt.Errorf("setting autostop: %q is not a number of minutes, at least 1", value))
		}
	}
	var err error
	c.agent, err = rented.NewAgent(values[rented.Arch.Name])
	return c, errors.Join(append(errs, err)...)
}

// guarantees are those that Daytona states for its machines.
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
