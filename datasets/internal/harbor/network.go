package harbor

import (
	"cmp"
	"slices"
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

// network is the one that the agent has, as a row names it.
func (c *config) network(t *task) (mode string, allow []string) {
	return c.Environment.reach(t, "environment", c.Agent.network)
}

// reach is the network of a part in the machine at a place in task.toml. The format's default is the whole internet.
func (m *machine) reach(t *task, at string, part network) (mode string, allow []string) {
	own := m.network
	if internet := m.Internet; internet != nil { // the switch that was there before the modes
		mode := "no-network"
		if *internet {
			mode = "public"
		}
		if own.Mode != "" && own.Mode != mode && !(*internet && own.Mode == "allowlist") {
			t.wrongf("%s: %s.allow_internet: %t, and network_mode is %s", configName, at, *internet, own.Mode)
		}
		own.Mode = cmp.Or(own.Mode, mode)
	}
	if part.Mode == "" {
		part = own
	}
	return modes[cmp.Or(part.Mode, "public")], slices.Sorted(slices.Values(part.Hosts))
}
