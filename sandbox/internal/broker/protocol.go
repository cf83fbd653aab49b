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
	Owner     int64
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

// Fields implements wire.Message.
func (o *Config) Fields(c wire.Coder) {
	c.String(&o.StateDir, &o.Cgroups, &o.Images)
	c.Int(&o.Owner, &o.IDs)
	c.Strings(&o.HostPaths)
	c.Bool(&o.Guests)
}

// Ready is the broker's answer to Config.
type Ready struct {
	Err               string
	Memory, Processes bool // limited by a cgroup
	CPU               bool // likewise, where one is asked for
	Groups            []string
	Missing           []string
}

// Fields implements wire.Message.
func (r *Ready) Fields(c wire.Coder) {
	c.String(&r.Err)
	c.Bool(&r.Memory, &r.Processes, &r.CPU)
	c.Strings(&r.Groups, &r.Missing)
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

// Fields implements wire.Message.
func (o *Open) Fields(c wire.Coder) {
	c.String(&o.ID, &o.Workdir, &o.From)
	c.Bool(&o.Image)
	c.Strings(&o.Layers)
	c.Int(&o.Inodes, &o.Network, &o.Memory, &o.Processes, &o.Disk, &o.Files, &o.CPU)
	c.Ints(&o.Ports)
}
