package box

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// files asks the guest. To read, the guest opens the file and passes the descriptor; it opens regular files only, so that
// reading can neither block nor have side effects.
type files struct{ box *Box }

func (f files) Stat(ctx context.Context, name string) (sandbox.Info, error) {
	r, err := f.box.call(ctx, guest.KindStat, func(e *wire.Encoder) { e.String(name) })
	if err != nil {
		return sandbox.Info{}, err
	}
	return TakeInfo(r.body)
}

func (f files) Read(ctx context.Context, name string, offset, limit int64) ([]byte, sandbox.Info, error) {
	if offset < 0 || limit < 0 {
		return nil, sandbox.Info{}, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	r, err := f.box.call(ctx, guest.KindOpen, func(e *wire.Encoder) { e.String(name) })
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	info, err := TakeInfo(r.body)
	if err != nil || len(r.fds) != 1 {
		wire.CloseAll(r.fds)
		return nil, sandbox.Info{}, errors.Join(err, &fs.PathError{Op: "read", Path: name, Err: wire.ErrMalformed})
	}
	file := os.NewFile(uintptr(r.fds[0]), name)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(r.fds[0], &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, info, &fs.PathError{Op: "read", Path: name, Err: sandbox.ErrNotRegular}
	}
	// The size is only a hint: a file may be sparse, or growing.
	size := min(limit, max(st.Size-offset, 0))
	data := make([]byte, 0, min(size+1, 16<<20))
	data, err = appendUpTo(ctx, data, io.NewSectionReader(file, offset, limit), limit)
	if ctx.Err() != nil && err != nil {
		return nil, info, err
	}
	if err != nil {
		return nil, info, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, info, nil
}

func appendUpTo(ctx context.Context, data []byte, r io.Reader, limit int64) ([]byte, error) {
	for int64(len(data)) < limit {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// bulk is the size from which contents travel as a memory file, which the guest copies without holding it in its own memory.
const bulk = 256 << 10

func (f files) Write(ctx context.Context, files ...sandbox.FileWrite) error {
	for len(files) > 0 {
		n, size := 0, 0
		for n < len(files) && size+len(files[n].Data) <= bulk {
			size += len(files[n].Data)
			n++
		}
		if n == 0 {
			if err := f.writeBulk(ctx, files[0]); err != nil {
				return err
			}
			files = files[1:]
			continue
		}
		batch := files[:n]
		files = files[n:]
		_, err := f.box.copying(ctx, size, guest.KindWrite, func(e *wire.Encoder) {
			wire.List(e.Coder(), &batch, func(file *sandbox.FileWrite, c wire.Coder) {
				w := guest.Write{Path: file.Path, Data: file.Data, Mode: int64(file.Perm()), Replace: file.Replace}
				w.Fields(c)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f files) writeBulk(ctx context.Context, file sandbox.FileWrite) error {
	fd, err := wire.MemoryFile(file.Data)
	if err != nil {
		return &fs.PathError{Op: "write", Path: file.Path, Err: err}
	}
	defer unix.Close(fd)
	_, err = f.box.copying(ctx, len(file.Data), guest.KindWriteBulk, func(e *wire.Encoder) {
		w := guest.Write{Path: file.Path, Mode: int64(file.Perm()), Replace: file.Replace}
		e.Add(&w)
	}, fd)
	return err
}

func (f files) List(ctx context.Context, name string) ([]sandbox.Info, error) {
	r, err := f.box.call(ctx, guest.KindList, func(e *wire.Encoder) { e.String(name) })
	if err != nil {
		return nil, err
	}
	return TakeInfos(r.body)
}

func (f files) Remove(ctx context.Context, paths ...string) error {
	_, err := f.box.call(ctx, guest.KindRemove, func(e *wire.Encoder) { e.Strings(paths) })
	return err
}
