// Package broker is the small process between the runner and the guests. It makes and ends sandboxes, so that neither
// the runner's heap nor its secrets are near a fork, and cleans up when the runner is gone.
package broker

import "trajgen/sandbox/internal/wire"

// Name under which this program is run again.
const Name = "trajgen-broker"

// Kinds of request, the first number of a message from the runner. The second is an id that the answer repeats; an
// answer is the id, the text of an error or "", and what is said at the kind.
const (
	KindOpen  = iota + 1 // Open; answered with pid and the guest's socket
	KindClose            // id of the sandbox
)

// Config is the first message from the runner.
type Config struct {
	StateDir  string
	Owner     int
	HostPaths []string
	Cgroups   string // auto, v1, v2 or none
	UserID    int    // of the runner
	Guests    bool   // its guests are what the broker is: sandboxd. Else they are the program for helpers
}

// Encode appends c.
func (c *Config) Encode(e *wire.Encoder) {
	e.String(c.StateDir)
	e.Int(int64(c.Owner))
	e.Strings(c.HostPaths)
	e.String(c.Cgroups)
	e.Int(int64(c.UserID))
	e.Bool(c.Guests)
}

// Decode takes c.
func (c *Config) Decode(d *wire.Decoder) {
	c.StateDir, c.Owner, c.HostPaths, c.Cgroups, c.UserID = d.String(), int(d.Int()), d.Strings(), d.String(), int(d.Int())
	c.Guests = d.Bool()
}

// Ready is the broker's answer to Config.
type Ready struct {
	Err               string
	Memory, Processes bool // limited by a cgroup
	Missing           []string
}

// Encode appends r.
func (r *Ready) Encode(e *wire.Encoder) {
	e.String(r.Err)
	e.Bool(r.Memory)
	e.Bool(r.Processes)
	e.Strings(r.Missing)
}

// Decode takes r.
func (r *Ready) Decode(d *wire.Decoder) {
	r.Err, r.Memory, r.Processes, r.Missing = d.String(), d.Bool(), d.Bool(), d.Strings()
}

// Open asks for a sandbox.
type Open struct {
	ID                             string
	Workdir                        string
	Loopback                       bool
	Memory, Processes, Disk, Files int64
}

// Encode appends o.
func (o *Open) Encode(e *wire.Encoder) {
	e.String(o.ID)
	e.String(o.Workdir)
	e.Bool(o.Loopback)
	e.Int(o.Memory)
	e.Int(o.Processes)
	e.Int(o.Disk)
	e.Int(o.Files)
}

// Decode takes o.
func (o *Open) Decode(d *wire.Decoder) {
	o.ID, o.Workdir, o.Loopback = d.String(), d.String(), d.Bool()
	o.Memory, o.Processes, o.Disk, o.Files = d.Int(), d.Int(), d.Int(), d.Int()
}
