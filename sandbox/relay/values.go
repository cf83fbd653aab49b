package relay

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/wire"
)

// encodeJSON appends what is but a few values, or text.
func encodeJSON(e *wire.Encoder, v any) {
	said, _ := json.Marshal(v) // plain structs
	e.Blob(said)
}

func decodeJSON(d *wire.Decoder, v any) error {
	said := d.Blob()
	if d.Err() != nil {
		return d.Err()
	}
	if err := json.Unmarshal(said, v); err != nil {
		return fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	return nil
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
	merged := c.Stderr != nil && command.SameWriter(c.Stdout, c.Stderr)
	for i, has := range []bool{c.Stdin != nil, c.Stdout != nil, c.Stderr != nil && !merged, merged, c.Socket, c.TTY != nil} {
		if has {
			s.flags |= 1 << i
		}
	}
	e.Int(s.flags)
	e.Strings(c.Args)
	e.String(c.Helper)
	e.String(c.Dir)
	e.Strings(c.Env)
	if c.TTY != nil {
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
		name := d.String()
		infos = append(infos, sandbox.Info{
			Name: name, Path: path.Join(dir, name), Size: d.Int(), Mode: fs.FileMode(d.Int()), ModTime: decodeTime(d),
		})
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
