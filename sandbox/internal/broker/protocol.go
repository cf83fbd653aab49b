// Package broker is the small process between the runner and the guests. It makes and ends sandboxes, so that neither
// the runner's heap nor its secrets are near a fork, and cleans up when the runner is gone.
package broker

import "trajgen/sandbox/internal/wire"

// Name under which this program is run again.
const Name = "trajgen-broker"

// Kinds of request, the first number of a message from the runner. The second is an id that the answer repeats; an
// answer is the id, the text of an error or "", and what is said at the kind.
const (
	KindOpen     = iota + 1 // Open; answered with the guest's socket
	KindClose               // id of the sandbox
	KindSnapshot            // id of the sandbox, name of the snapshot; answered with the socket of the sandbox's new guest
	KindForget              // name of the snapshot
	KindLabel               // id of the sandbox, and what it is listed as from now on
)

// Config is the first message from the runner.
type Config struct {
	StateDir  string
	Owner     int
	HostPaths []string
	Cgroups   string // auto, v1, v2 or none
	IDs       int64  // as below
	Images    string // a directory that holds all layers of images; "" is none
	Guests    bool   // its guests are what the broker is: sandboxd. Else they are the program for helpers
}

// What user ids there are for guests.
const (
	// IDsSingle is one: 0 in the broker's namespace.
	IDsSingle = iota
	// IDsShared is 0 and PerBox more in the broker's namespace, for all guests together. An ordinary user has no more, and
	// cannot shift the ids of files when they are mounted: only with the same ids can forks read what others wrote.
	IDsShared
	// IDsOwn is PerBox for each guest, which the broker takes for them as real root.
	IDsOwn
)

// PerBox is how many user ids a sandbox has, unless there is only one.
const PerBox = 65536

// FirstID returns where a sandbox's ids begin, numbered in any way, among those that no system has users for.
func FirstID(number int) int {
	const first, ranges = 0x40000000, 16384
	return first + int(uint(number)%ranges)*PerBox
}

// Encode appends c.
func (c *Config) Encode(e *wire.Encoder) {
	e.String(c.StateDir)
	e.Int(int64(c.Owner))
	e.Strings(c.HostPaths)
	e.String(c.Cgroups)
	e.Int(c.IDs)
	e.String(c.Images)
	e.Bool(c.Guests)
}

// Decode takes c.
func (c *Config) Decode(d *wire.Decoder) {
	c.StateDir, c.Owner, c.HostPaths, c.Cgroups, c.IDs = d.String(), int(d.Int()), d.Strings(), d.String(), d.Int()
	c.Images, c.Guests = d.String(), d.Bool()
}

// Ready is the broker's answer to Config.
type Ready struct {
	Err               string
	Memory, Processes bool // limited by a cgroup
	CPU               bool // likewise, where one is asked for
	Groups            []string
	Missing           []string
}

// Encode appends r.
func (r *Ready) Encode(e *wire.Encoder) {
	e.String(r.Err)
	e.Bool(r.Memory)
	e.Bool(r.Processes)
	e.Bool(r.CPU)
	e.Strings(r.Groups)
	e.Strings(r.Missing)
}

// Decode takes r.
func (r *Ready) Decode(d *wire.Decoder) {
	r.Err, r.Memory, r.Processes, r.CPU = d.String(), d.Bool(), d.Bool(), d.Bool()
	r.Groups, r.Missing = d.Strings(), d.Strings()
}

// Open asks for a sandbox.
type Open struct {
	ID                             string
	Workdir                        string
	From                           string   // a snapshot to begin with; "" is none
	Image                          bool     // the root is an image, of Layers unless it is From's
	Layers                         []string // directories below Config.Images, the uppermost first
	Inodes                         int64
	Network                        int64   // as in guest.Boot
	Ports                          []int64 // likewise
	Memory, Processes, Disk, Files int64
	CPU                            int64 // thousandths of a processor; 0 is no limit
}

// Encode appends o.
func (o *Open) Encode(e *wire.Encoder) {
	e.String(o.ID)
	e.String(o.Workdir)
	e.String(o.From)
	e.Bool(o.Image)
	e.Strings(o.Layers)
	e.Int(o.Inodes)
	e.Int(o.Network)
	e.Int(int64(len(o.Ports)))
	for _, port := range o.Ports {
		e.Int(port)
	}
	e.Int(o.Memory)
	e.Int(o.Processes)
	e.Int(o.Disk)
	e.Int(o.Files)
	e.Int(o.CPU)
}

// Decode takes o.
func (o *Open) Decode(d *wire.Decoder) {
	o.ID, o.Workdir, o.From, o.Image, o.Layers, o.Inodes = d.String(), d.String(), d.String(), d.Bool(), d.Strings(), d.Int()
	o.Network = d.Int()
	for range d.Len() {
		o.Ports = append(o.Ports, d.Int())
	}
	o.Memory, o.Processes, o.Disk, o.Files, o.CPU = d.Int(), d.Int(), d.Int(), d.Int(), d.Int()
}
