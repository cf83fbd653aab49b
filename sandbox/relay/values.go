package relay

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// encodeJSON appends a struct as JSON: one of few fields, or mostly of text.
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

// layout is a sandbox's layout as it travels.
type layout sandbox.Layout

// Fields implements wire.Message.
func (l *layout) Fields(c wire.Coder) { c.String(&l.Workdir, &l.Home, &l.Tmp, &l.Tests, &l.ReadOnly) }

// startOf returns a command without its streams.
func startOf(cmd *sandbox.Command) *guest.Start {
	s := &guest.Start{Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir}
	if cmd.Helper != "" {
		s.Helper, s.Args = true, append([]string{cmd.Helper}, cmd.Args...)
	}
	merged := cmd.Stderr != nil && command.SameWriter(cmd.Stdout, cmd.Stderr)
	for flag, has := range map[int64]bool{
		guest.FDStdin: cmd.Stdin != nil, guest.FDStdout: cmd.Stdout != nil, guest.FDStderr: cmd.Stderr != nil && !merged,
		guest.FDMerged: merged, guest.FDSocket: cmd.Socket, guest.FDTerminal: cmd.TTY != nil,
	} {
		if has {
			s.FDs |= flag
		}
	}
	if cmd.TTY != nil {
		s.Rows, s.Cols = int64(cmd.TTY.Rows), int64(cmd.TTY.Cols)
	}
	return s
}

// commandOf returns the command of a start, without its streams.
func commandOf(s *guest.Start) sandbox.Command {
	cmd := sandbox.Command{Args: s.Args, Env: s.Env, Dir: s.Dir, Socket: s.FDs&guest.FDSocket != 0}
	if s.Helper && len(s.Args) > 0 {
		cmd.Helper, cmd.Args = s.Args[0], s.Args[1:]
	}
	if s.FDs&guest.FDTerminal != 0 {
		cmd.TTY = &sandbox.TTY{Rows: uint16(s.Rows), Cols: uint16(s.Cols)}
	}
	return cmd
}

// infoOf returns the description that the guest would give of a file.
func infoOf(i sandbox.Info) guest.Info {
	return guest.Info{
		Path: i.Path, Size: i.Size, Mode: int64(i.Mode), Seconds: i.ModTime.Unix(), Nanoseconds: int64(i.ModTime.Nanosecond()),
	}
}

// addFiles appends files as guest.Write does, without copying long contents.
func (m *message) addFiles(files []sandbox.FileWrite) {
	m.Int(int64(len(files)))
	for i := range files {
		f := &files[i]
		m.String(f.Path)
		m.bulk(f.Data)
		m.Int(int64(f.Perm()))
		m.Bool(f.Replace)
	}
}

func takeFiles(d *wire.Decoder) ([]sandbox.FileWrite, error) {
	var all []guest.Write
	wire.List(d.Coder(), &all, (*guest.Write).Fields)
	files := make([]sandbox.FileWrite, len(all))
	for i, w := range all {
		files[i] = sandbox.FileWrite{Path: w.Path, Data: w.Data, Mode: fs.FileMode(w.Mode), Replace: w.Replace}
	}
	return files, d.Err()
}
