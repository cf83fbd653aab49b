// Package broker is the small process between the runner and the guests. It makes and ends sandboxes, so that processes are
// never forked from the runner, with its large heap and its secrets, and cleans up when the runner is gone.
package broker

import "trajgen/sandbox/internal/wire"

// Name is the name under which this program runs again as the broker.
const Name = "trajgen-broker"

// Kinds of request. A request is its kind, an id and its content; an answer is the id, the text of an error or "", and what the
// comment on the kind says.
const (
	KindOpen     = iota + 1 // Open; answered with the guest's socket
	KindClose               // id of the sandbox
	KindSnapshot            // id of the sandbox, name of the snapshot; the sandbox has no guest then
	KindWake                // id of a sandbox without a guest; answered with the socket of the new one
	KindForget              // name of the snapshot
	KindLayer               // name of the snapshot; answered with a pipe from which its uppermost layer is read, as a tarball
	KindLabel               // id of the sandbox, and its new name in listings
	KindFolder              // digest of a folder, with a memory file of its files; the broker keeps it
)

// The last entry of a layer's tarball is a global header with the record LayerEnd: LayerWhole, or why the layer is incomplete.
const (
	LayerEnd   = "TRAJGEN.end"
	LayerWhole = "whole"
)

// Config is the first message from the runner.
type Config struct {
	StateDir  string
	Owner     int64
	HostPaths []string
	Cgroups   string // auto, v1, v2 or none
	IDs       int64  // one of the constants below
	Images    string // a directory that holds all layers of images; "" is none
	Guests    bool   // guests run the broker's program, sandboxd. Else they run the program for helpers
}

// Which user ids guests get.
const (
	// IDsSingle is a single one: 0 in the broker's namespace.
	IDsSingle = iota
	// IDsShared is 0 and PerBox more in the broker's namespace, shared by all guests. An ordinary user has no more, and cannot
	// shift the ids of files in a mount: forks can read each other's files only with the same ids.
	IDsShared
	// IDsOwn is PerBox for each guest, which the broker can take as real root.
	IDsOwn
)

// PerBox is how many user ids a sandbox has, except with IDsSingle.
const PerBox = 65536

// FirstID returns the first id of the sandbox with a number, in a range where systems have no users.
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
	CPU               bool // likewise, for sandboxes with a CPU limit
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
	From                           string   // a snapshot to start from; "" is none
	Bare                           bool     // as in guest.Boot
	Image                          bool     // the root is an image: Layers, or that of From
	Host                           bool     // the image is what the broker shows of the machine
	Layers                         []string // directories below Config.Images, the uppermost first
	Folder, Digest                 string   // the name that a folder has in the sandbox, and which one it is; "" is none
	Inodes                         int64
	Network                        int64   // as in guest.Boot
	Ports                          []int64 // likewise
	Memory, Processes, Disk, Files int64
	CPU                            int64 // thousandths of a processor; 0 is unlimited
}

// Fields implements wire.Message.
func (o *Open) Fields(c wire.Coder) {
	c.String(&o.ID, &o.Workdir, &o.From, &o.Folder, &o.Digest)
	c.Bool(&o.Bare, &o.Image, &o.Host)
	c.Strings(&o.Layers)
	c.Int(&o.Inodes, &o.Network, &o.Memory, &o.Processes, &o.Disk, &o.Files, &o.CPU)
	c.Ints(&o.Ports)
}
