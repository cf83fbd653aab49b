// Package guest is process 1 of a sandbox: it builds the root file system, starts commands and serves files.
package guest

import "trajgen/sandbox/internal/wire"

// Names under which this program runs again, and its path in a sandbox.
const (
	Name    = "trajgen-guest"
	Program = "/.trajgen"
)

// FoldersDir is where the broker keeps read-only folders, by their digests, and where a new guest finds them.
const FoldersDir = "/folders"

// Tests is a file system of its own, for the verifier's files.
const Tests = "/tests"

// Kinds of request, the first number of a message from the runner. The second is an id, which the reply repeats.
const (
	KindStart = iota + 1
	KindKill
	KindKillAll
	KindStat
	KindOpen
	KindWrite     // files with their content
	KindWriteBulk // one file, whose content comes as a memory file
	KindList
	KindRemove // paths
	KindCount  // answered with the number of processes beside the guest
)

// Kinds of message to the runner.
const (
	KindReply = iota + 1
	KindExit
	// KindListeners comes first when the network is NetworkCarried: after an id of 0, the reason why not all connections are
	// caught ("" if they are), and whether more such messages follow. The sockets come with it: the first of all is for names,
	// the others are for connections.
	KindListeners
)

// Codes of a reply.
const (
	CodeOK = iota
	CodeErrno
	CodeNotRegular
	CodeNotFound
)

// Which descriptors come with a KindStart, in this order.
const (
	FDStdin = 1 << iota
	FDStdout
	FDStderr
	FDSocket
	FDMerged   // stderr goes to stdout
	FDTerminal // only the socket: the other three are a terminal, whose master comes with the reply
)

// Start asks for a command.
type Start struct {
	Helper bool
	Args   []string
	Env    []string
	Dir    string
	FDs    int64
	Rows   int64 // of the terminal
	Cols   int64
}

// Fields implements wire.Message.
func (s *Start) Fields(c wire.Coder) {
	c.Bool(&s.Helper)
	c.Strings(&s.Args, &s.Env)
	c.String(&s.Dir)
	c.Int(&s.FDs, &s.Rows, &s.Cols)
}

// Exit says how a command ended.
type Exit struct {
	Code, Signal int64
	Limits       int64 // limits that had an effect
	CPU          int64 // nanoseconds
}

// Fields implements wire.Message.
func (x *Exit) Fields(c wire.Coder) {
	c.Int(&x.Code, &x.Signal, &x.Limits, &x.CPU)
}

// Failure is why a request failed.
type Failure struct {
	Code  int64
	Errno int64
	Op    string
	Path  string
}

// Fields implements wire.Message.
func (f *Failure) Fields(c wire.Coder) {
	c.Int(&f.Code, &f.Errno)
	c.String(&f.Op, &f.Path)
}

// Info describes a file.
type Info struct {
	Path                 string
	Size                 int64
	Mode                 int64 // a fs.FileMode
	Seconds, Nanoseconds int64 // modification time since 1970, which commands can set
}

// Fields implements wire.Message.
func (i *Info) Fields(c wire.Coder) {
	c.String(&i.Path)
	c.Int(&i.Size, &i.Mode, &i.Seconds, &i.Nanoseconds)
}

// Write is a file to write.
type Write struct {
	Path    string
	Data    []byte
	Mode    int64
	Replace bool

	bulk int // a descriptor to copy from instead of Data; 0 is none
}

// Fields implements wire.Message.
func (w *Write) Fields(c wire.Coder) {
	c.String(&w.Path)
	c.Blob(&w.Data)
	c.Int(&w.Mode)
	c.Bool(&w.Replace)
}

// Kinds of network.
const (
	NetworkNone = iota
	NetworkLoopback
	NetworkCarried // the runner carries connections
)

// Boot is the broker's message to a new guest.
type Boot struct {
	Workdir   string
	Folder    string // the name of a read-only folder; "" is none
	Digest    string // of that folder
	Bare      bool   // the image is shown as it is: see sandbox.Spec
	System    bool   // the root is a writable image; otherwise the toolchain of Image, with a few writable directories
	Host      bool   // the writable image is the toolchain of Image
	Layers    int64  // descriptors of detached mounts below the root, the uppermost first; 0 starts empty
	Fork      bool   // the layers include the initial files of a sandbox
	Inodes    int64
	Single    bool // there is only one user id
	Shared    bool // other sandboxes have the same ids
	Network   int64
	Ports     []int64 // ports that commands probably connect to, where not all can be caught
	Disk      int64
	Files     int64
	Processes int64 // per-process limit; 0 where a cgroup has it
	Memory    int64 // likewise
	Limit     int64 // Counters.Limit
	// The rest says which descriptors come with the message, after a memory file with the Image and the Layers, in this order.
	Join     int64 // cgroup files to join by
	Memories bool  // Counters.Memory
	Forks    bool  // Counters.Processes
	Slowed   bool  // Counters.CPU
	Peak     bool  // Counters.Peak
	Commands bool  // a cgroup directory to fork into
}

// Fields implements wire.Message.
func (b *Boot) Fields(c wire.Coder) {
	c.String(&b.Workdir, &b.Folder, &b.Digest)
	c.Bool(&b.Bare, &b.System, &b.Host, &b.Fork, &b.Single, &b.Shared)
	c.Int(&b.Layers, &b.Inodes, &b.Network, &b.Disk, &b.Files, &b.Processes, &b.Memory, &b.Limit, &b.Join)
	c.Ints(&b.Ports)
	c.Bool(&b.Memories, &b.Forks, &b.Slowed, &b.Peak, &b.Commands)
}

// Image is what a root file system is made of, beside Directories. Binds are taken from the same path of the broker's root.
// Dirs are sorted parents first, and include missing parents of links and binds.
type Image struct {
	Dirs  []Dir
	Links []Link
	Files []Write
	Binds []Bind
	// Pins are the directories between a writable one and a bind in it, the outermost first. Commands must not rename them.
	Pins []string
}

// Dir is a directory.
type Dir struct {
	Path string
	Mode int64
}

// Link is a symbolic link.
type Link struct{ Path, Target string }

// Bind is a directory or file of the broker's root.
type Bind struct {
	Path string
	File bool
}

// Fields implements wire.Message.
func (m *Image) Fields(c wire.Coder) {
	wire.List(c, &m.Dirs, (*Dir).Fields)
	wire.List(c, &m.Links, (*Link).Fields)
	wire.List(c, &m.Files, (*Write).Fields)
	wire.List(c, &m.Binds, (*Bind).Fields)
	c.Strings(&m.Pins)
}

// Fields implements wire.Message.
func (d *Dir) Fields(c wire.Coder) {
	c.String(&d.Path)
	c.Int(&d.Mode)
}

// Fields implements wire.Message.
func (l *Link) Fields(c wire.Coder) { c.String(&l.Path, &l.Target) }

// Fields implements wire.Message.
func (b *Bind) Fields(c wire.Coder) {
	c.String(&b.Path)
	c.Bool(&b.File)
}
