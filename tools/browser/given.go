package browser

import (
	"bytes"
	"context"
	"mime"
	"path"
	"sync"
)

// maxGiven bounds what is read of a file that a form has in it.
const maxGiven = 16 << 20

// Give notes a file of the sandbox that a page may send, and how to read some bytes of it. Where the gate answers a request itself,
// it has to put the file's content in: the browser shows a request without it.
func (b *Browser) Give(file string, read func(ctx context.Context, most int64) ([]byte, error)) {
	g := b.cfg.given
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.files == nil || len(g.files) >= 200 {
		g.files = map[string]func(context.Context, int64) ([]byte, error){}
	}
	g.files[path.Base(file)] = read
}

// given are the files that pages were given, by name.
type given struct {
	mu    sync.Mutex
	files map[string]func(ctx context.Context, most int64) ([]byte, error)
}

// content is that of the file whose part of a form begins at the end of before; nil for another file.
func (g *given) content(ctx context.Context, before []byte) ([]byte, error) {
	head := bytes.TrimSuffix(before, []byte("\r\n\r\n"))
	head = head[max(0, bytes.LastIndex(head, []byte("Content-Disposition:"))):]
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("Content-Disposition:")), []byte("\r\n"))
	_, params, err := mime.ParseMediaType(string(bytes.TrimSpace(line)))
	if err != nil {
		return nil, nil
	}
	g.mu.Lock()
	read := g.files[params["filename"]]
	g.mu.Unlock()
	if read == nil {
		return nil, nil
	}
	return read(ctx, maxGiven)
}
