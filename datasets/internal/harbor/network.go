package harbor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// network is what a table says of it.
type network struct {
	Mode  string   `json:"network_mode"` // "" is nothing
	Hosts []string `json:"allowed_hosts"`
}

// modes are the names that rows of a dataset have for them.
var modes = map[string]string{"public": "full", "no-network": "loopback", "allowlist": "allowlist"}

func (n network) check(t *task, at string) {
	switch {
	case len(n.Hosts) > 0 && n.Mode != "allowlist":
		t.wrongf("%s: %s.allowed_hosts: they go with network_mode allowlist", configName, at)
	case len(n.Hosts) == 0 && n.Mode == "allowlist":
		t.wrongf("%s: %s.allowed_hosts: none, and network_mode is allowlist", configName, at)
	}
}

// network is the one that the agent and the verifier have, as a row names it. The format's default is the whole internet.
func (c *config) network(t *task) (mode string, allow []string) {
	own := c.Environment.network
	if internet := c.Environment.Internet; internet != nil { // the switch that was there before the modes
		mode := "no-network"
		if *internet {
			mode = "public"
		}
		if own.Mode != "" && own.Mode != mode && !(*internet && own.Mode == "allowlist") {
			t.wrongf("%s: environment.allow_internet: %t, and network_mode is %s", configName, *internet, own.Mode)
		}
		own.Mode = cmp.Or(own.Mode, mode)
	}
	own.Mode = cmp.Or(own.Mode, "public")
	agent, verifier := c.Agent.network, c.Verifier.network
	if agent.Mode == "" {
		agent = own
	}
	if verifier.Mode == "" {
		verifier = own
	}
	if agent.String() != verifier.String() {
		t.wrongf("%s: the agent has %s and the verifier %s, but a sandbox has one network", configName, agent, verifier)
	}
	return modes[agent.Mode], agent.Hosts
}

func (n network) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", n.Mode, strings.Join(slices.Sorted(slices.Values(n.Hosts)), ", ")))
}
