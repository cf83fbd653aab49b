package relay

import (
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

func encodeSpec(e *wire.Encoder, s *sandbox.Spec, from uint64) {
	e.String(s.ID)
	e.String(s.Image)
	e.Int(int64(from))
	e.String(s.Workdir)
	e.Int(int64(len(s.Env)))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		e.String(name)
		e.String(s.Env[name])
	}
	e.String(string(s.Network))
	e.Strings(s.Allow)
	l := &s.Limits
	e.Int(l.Memory)
	e.Int(int64(l.Processes))
	e.Int(int64(math.Float64bits(l.CPUs)))
	e.Int(l.Disk)
	e.Int(l.Inodes)
	e.Int(int64(l.Files))
}

func decodeSpec(d *wire.Decoder) (s sandbox.Spec, from uint64) {
	s.ID, s.Image, from, s.Workdir = d.String(), d.String(), uint64(d.Int()), d.String()
	for range d.Len() {
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		name := d.String()
		s.Env[name] = d.String()
	}
	s.Network, s.Allow = sandbox.Network(d.String()), list(d)
	l := &s.Limits
	l.Memory, l.Processes, l.CPUs = d.Int(), int(d.Int()), math.Float64frombits(uint64(d.Int()))
	l.Disk, l.Inodes, l.Files = d.Int(), d.Int(), int(d.Int())
	return s, from
}

// list takes a list, nil when it is empty.
func list(d *wire.Decoder) []string {
	if s := d.Strings(); len(s) > 0 {
		return s
	}
	return nil
}

func encodeLayout(e *wire.Encoder, l sandbox.Layout) {
	e.String(l.Workdir)
	e.String(l.Home)
	e.String(l.Tmp)
	e.String(l.Tests)
}

func decodeLayout(d *wire.Decoder) sandbox.Layout {
	return sandbox.Layout{Workdir: d.String(), Home: d.String(), Tmp: d.String(), Tests: d.String()}
}

// Which of a command's streams have a reader or writer at the other end.
const (
	hasStdin = 1 << iota
	hasStdout
	hasStderr
	isMerged // stderr is stdout
	hasSocket
	hasTTY
)

// start is a command without its streams.
type start struct {
	flags   int64
	command sandbox.Command
}

func (s *start) encode(e *wire.Encoder) {
	c := &s.command
	e.Int(s.flags)
	e.Strings(c.Args)
	e.String(c.Helper)
	e.String(c.Dir)
	e.Strings(c.Env)
	if s.flags&hasTTY != 0 {
		encodeSize(e, *c.TTY)
	}
}

func (s *start) decode(d *wire.Decoder) {
	c := &s.command
	s.flags = d.Int()
	c.Args, c.Helper, c.Dir, c.Env = list(d), d.String(), d.String(), list(d)
	c.Socket = s.flags&hasSocket != 0
	if s.flags&hasTTY != 0 {
		size := decodeSize(d)
		c.TTY = &size
	}
}

func encodeSize(e *wire.Encoder, size sandbox.TTY) {
	e.Int(int64(size.Rows))
	e.Int(int64(size.Cols))
}

func decodeSize(d *wire.Decoder) sandbox.TTY {
	return sandbox.TTY{Rows: uint16(d.Int()), Cols: uint16(d.Int())}
}

func encodeExit(e *wire.Encoder, x sandbox.Exit, err error) {
	e.Int(int64(x.Code))
	e.Int(int64(x.Signal))
	e.Bool(x.OOM)
	e.Strings(x.Limits)
	e.Int(int64(x.CPU))
	encodeError(e, err)
}

func decodeExit(d *wire.Decoder) (x sandbox.Exit, err error) {
	x.Code, x.Signal, x.OOM, x.Limits, x.CPU = int(d.Int()), int(d.Int()), d.Bool(), list(d), time.Duration(d.Int())
	return x, decodeError(d)
}

// encodeInfos appends what is known of the files of a directory, or of a single file.
func encodeInfos(e *wire.Encoder, infos ...sandbox.Info) {
	e.Int(int64(len(infos)))
	if len(infos) == 0 {
		return
	}
	dir := path.Dir(infos[0].Path)
	e.String(dir)
	for i := range infos {
		info := &infos[i]
		e.String(info.Name)
		inside := info.Path == path.Join(dir, info.Name)
		e.Bool(inside)
		if !inside {
			e.String(info.Path)
		}
		e.Int(info.Size)
		e.Int(int64(info.Mode))
		encodeTime(e, info.ModTime)
	}
}

func decodeInfos(d *wire.Decoder) []sandbox.Info {
	infos := []sandbox.Info{}
	n := d.Len()
	if n == 0 {
		return infos
	}
	dir := d.String()
	for range n {
		if d.Err() != nil {
			break
		}
		info := sandbox.Info{Name: d.String()}
		if d.Bool() {
			info.Path = path.Join(dir, info.Name)
		} else {
			info.Path = d.String()
		}
		info.Size, info.Mode, info.ModTime = d.Int(), fs.FileMode(d.Int()), decodeTime(d)
		infos = append(infos, info)
	}
	return infos
}

// decodeInfo takes what is known of a single file.
func decodeInfo(d *wire.Decoder) sandbox.Info {
	if infos := decodeInfos(d); len(infos) == 1 {
		return infos[0]
	}
	return sandbox.Info{}
}

// encodeTime keeps what UnixNano cannot hold: commands set the times of files at will.
func encodeTime(e *wire.Encoder, t time.Time) {
	e.Bool(t.IsZero())
	if !t.IsZero() {
		e.Int(t.Unix())
		e.Int(int64(t.Nanosecond()))
	}
}

func decodeTime(d *wire.Decoder) time.Time {
	if d.Bool() {
		return time.Time{}
	}
	return time.Unix(d.Int(), d.Int())
}

func encodeConnections(e *wire.Encoder, connections []sandbox.Connection) {
	e.Int(int64(len(connections)))
	for i := range connections {
		c := &connections[i]
		e.String(c.Host)
		e.Int(int64(c.Port))
		e.String(c.Address)
		encodeTime(e, c.Started)
		e.Int(c.Sent)
		e.Int(c.Received)
		e.String(c.Refused)
		e.String(c.Failed)
	}
}

func decodeConnections(d *wire.Decoder) []sandbox.Connection {
	var connections []sandbox.Connection
	for range d.Len() {
		if d.Err() != nil {
			break
		}
		connections = append(connections, sandbox.Connection{
			Host: d.String(), Port: int(d.Int()), Address: d.String(), Started: decodeTime(d),
			Sent: d.Int(), Received: d.Int(), Refused: d.String(), Failed: d.String(),
		})
	}
	return connections
}
