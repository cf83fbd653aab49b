package relay

import (
	"context"
	"io/fs"
	"syscall"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// files are those of a sandbox at the other end.
type files struct{ box *box }

func (f files) Stat(ctx context.Context, path string) (sandbox.Info, error) {
	d, err := f.box.call(ctx, methodStat, func(m *message) { m.String(path) })
	if err != nil {
		return sandbox.Info{}, err
	}
	info := decodeInfo(d)
	return info, f.malformed(d)
}

// Read asks for long files in pieces, so that neither end has to hold more of one in memory than the other wants.
func (f files) Read(ctx context.Context, path string, offset, limit int64) ([]byte, sandbox.Info, error) {
	data, info, err := f.read(ctx, path, offset, limit)
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	for piece := data; int64(len(piece)) == maxRead && int64(len(data)) < limit; {
		if piece, _, err = f.read(ctx, path, offset+int64(len(data)), limit-int64(len(data))); err != nil {
			return nil, sandbox.Info{}, err
		}
		data = append(data, piece...)
	}
	return data, info, nil
}

func (f files) read(ctx context.Context, path string, offset, limit int64) ([]byte, sandbox.Info, error) {
	limit = min(limit, maxRead)
	d, err := f.box.call(ctx, methodRead, func(m *message) {
		m.String(path)
		m.Int(offset)
		m.Int(limit)
	})
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	info, data := decodeInfo(d), d.Blob()
	if err := f.malformed(d); err != nil {
		return nil, sandbox.Info{}, err
	}
	return data[:max(0, min(int64(len(data)), limit))], info, nil
}

// malformed ends the connection when an answer was not what was asked for.
func (f files) malformed(d *wire.Decoder) error {
	if d.Err() == nil {
		return nil
	}
	f.box.client.conn.lose(d.Err())
	return f.box.errGone()
}

// Write sends files together as long as they are small.
func (f files) Write(ctx context.Context, all ...sandbox.FileWrite) error {
	for {
		n, size := 0, 0
		for n < len(all) && (n == 0 || size+len(all[n].Data) <= maxBatch) {
			size += len(all[n].Data)
			n++
		}
		if n == 1 && size > maxFile {
			return &fs.PathError{Op: "write", Path: all[0].Path, Err: syscall.EFBIG}
		}
		_, err := f.box.call(ctx, methodWrite, func(m *message) {
			m.Int(int64(n))
			for i := range all[:n] {
				m.file(&all[i])
			}
		})
		if all = all[n:]; err != nil || len(all) == 0 {
			return err
		}
	}
}

func (f files) List(ctx context.Context, path string) ([]sandbox.Info, error) {
	d, err := f.box.call(ctx, methodList, func(m *message) { m.String(path) })
	if err != nil {
		return nil, err
	}
	infos := decodeInfos(d)
	if err := f.malformed(d); err != nil {
		return nil, err
	}
	return infos, nil
}

func (f files) Remove(ctx context.Context, paths ...string) error {
	_, err := f.box.call(ctx, methodRemove, func(m *message) { m.Strings(paths) })
	return err
}
