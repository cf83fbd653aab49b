package relay

import (
	"context"
	"io/fs"
	"syscall"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/box"
)

// files are the files of a sandbox on the server.
type files struct{ box *remote }

func (f files) Stat(ctx context.Context, path string) (sandbox.Info, error) {
	m := f.box.about()
	m.String(path)
	d, err := f.box.call(ctx, methodStat, m)
	if err != nil {
		return sandbox.Info{}, err
	}
	info, err := box.TakeInfo(d)
	return info, f.box.malformed(err)
}

// Read reads long files in pieces, so that neither side holds more of a file in memory than it has to.
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
	m := f.box.about()
	m.String(path)
	m.Int(offset)
	m.Int(limit)
	d, err := f.box.call(ctx, methodRead, m)
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	info, _ := box.TakeInfo(d)
	data := d.Blob()
	if err := f.box.malformed(d.Err()); err != nil {
		return nil, sandbox.Info{}, err
	}
	return data[:max(0, min(int64(len(data)), limit))], info, nil
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
		m := f.box.about()
		m.addFiles(all[:n])
		_, err := f.box.call(ctx, methodWrite, m)
		if all = all[n:]; err != nil || len(all) == 0 {
			return err
		}
	}
}

func (f files) List(ctx context.Context, path string) ([]sandbox.Info, error) {
	m := f.box.about()
	m.String(path)
	d, err := f.box.call(ctx, methodList, m)
	if err != nil {
		return nil, err
	}
	infos, err := box.TakeInfos(d)
	return infos, f.box.malformed(err)
}

func (f files) Remove(ctx context.Context, paths ...string) error {
	m := f.box.about()
	m.Strings(paths)
	_, err := f.box.call(ctx, methodRemove, m)
	return err
}
