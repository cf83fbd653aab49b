package tape

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/outputs/log/blobs"
	"trajgen/outputs/log/disk"
)

// Cache keeps answers of the live web on the disk for a time: a file for each request, named after its key. Many processes may use
// one directory at once, and a file that is damaged is not used. What is older than the time is removed when the cache is opened.
type Cache struct {
	dir     string
	ttl     time.Duration
	secrets secrets
	now     func() time.Time

	mu      sync.Mutex
	flights map[key]chan struct{} // of requests that are under way; closed at their end
}

// answerEnd is how the names of files end.
const answerEnd = ".answer"

// OpenCache opens the cache in a directory.
func OpenCache(dir string, ttl time.Duration, o Options) (*Cache, error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("make the cache of the web: %w", err)
	}
	c := &Cache{dir: dir, ttl: ttl, secrets: o.Secrets, now: o.Now, flights: map[key]chan struct{}{}}
	if err := c.prune(); err != nil {
		return nil, fmt.Errorf("remove what is old from the cache of the web: %w", err)
	}
	return c, nil
}

// prune removes files that are too old, and what a crash left of one. Another process may do the same.
func (c *Cache) prune() error {
	return filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		ours := err == nil && !entry.IsDir() && (filepath.Ext(path) == answerEnd || strings.HasPrefix(entry.Name(), disk.Temporary))
		if ours {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil && c.now().Sub(info.ModTime()) > c.ttl {
				err = os.Remove(path)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
}

// Transport answers requests from the cache, else by live. Provider is as in a recording.
func (c *Cache) Transport(provider string, live http.RoundTripper) *Cached {
	return &Cached{cache: c, provider: provider, live: live}
}

// Cached is a transport that knows how often the cache answered.
type Cached struct {
	cache       *Cache
	provider    string
	live        http.RoundTripper
	asked, hits atomic.Int64
}

// Stats are how many requests there were, and how many the cache answered.
func (t *Cached) Stats() (asked, hits int) { return int(t.asked.Load()), int(t.hits.Load()) }

// RoundTrip implements http.RoundTripper. Of equal requests at one time the first is made, and the others wait for its answer.
func (t *Cached) RoundTrip(req *http.Request) (*http.Response, error) {
	c := t.cache
	a, body, kept, err := c.secrets.read(req, t.provider)
	if err != nil {
		return nil, err
	}
	t.asked.Add(1)
	k := a.key()
	land, err := c.begin(req.Context(), k)
	if err != nil {
		return nil, err
	}
	if x, got, found := c.find(k); found {
		land()
		t.hits.Add(1)
		return x.answerTo(req, got), nil
	}
	o := &open{
		x: &exchange{asked: a, Began: c.now().UnixMilli()}, sent: kept, began: c.now(), ctx: req.Context(), names: cameHeaders, secrets: c.secrets, now: c.now,
		keep: func(x *exchange, _, body []byte) error { return c.keep(k, x, body) },
	}
	resp, err := o.send(req, body, t.live)
	if err != nil {
		land()
		return nil, err
	}
	resp.Body = &landing{resp.Body, land}
	return resp, nil
}

// begin waits until no equal request is under way.
func (c *Cache) begin(ctx context.Context, k key) (land func(), err error) {
	for {
		c.mu.Lock()
		flight, flying := c.flights[k]
		if !flying {
			flight = make(chan struct{})
			c.flights[k] = flight
		}
		c.mu.Unlock()
		if !flying {
			return sync.OnceFunc(func() {
				c.mu.Lock()
				delete(c.flights, k)
				c.mu.Unlock()
				close(flight)
			}), nil
		}
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// landing is a body at whose end the answer is in the cache.
type landing struct {
	io.ReadCloser
	land func()
}

func (l *landing) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if err != nil {
		l.land()
	}
	return n, err
}

func (l *landing) Close() error {
	defer l.land()
	return l.ReadCloser.Close()
}

func (c *Cache) path(k key) string {
	name := hex.EncodeToString(k[:])
	return filepath.Join(c.dir, name[:2], name[2:]+answerEnd)
}

// find reads an answer that is young enough.
func (c *Cache) find(k key) (x *exchange, body []byte, found bool) {
	file, err := os.ReadFile(c.path(k))
	if err != nil {
		return nil, nil, false
	}
	head, packed, _ := bytes.Cut(file, []byte("\n"))
	x = &exchange{}
	if json.Unmarshal(head, x) != nil || c.now().Sub(x.began()) > c.ttl {
		return nil, nil, false
	}
	if body, err = blobs.Unpack(packed); err != nil || x.Bytes > 0 && blobs.Digest(body) != x.Body {
		return nil, nil, false
	}
	return x, body, true
}

// keep writes an answer that the same request would get again.
func (c *Cache) keep(k key, x *exchange, body []byte) error {
	if x.Failure != nil || x.Status >= http.StatusBadRequest && x.Status != http.StatusNotFound && x.Status != http.StatusGone {
		return nil
	}
	if len(body) > 0 {
		x.Body = blobs.Digest(body)
	}
	head, err := json.Marshal(x)
	if err == nil {
		err = replace(c.path(k), append(append(head, '\n'), blobs.Pack(body)...))
	}
	if err != nil {
		return unusable(fmt.Errorf("write the cache of the web: %w", err))
	}
	return nil
}

// replace puts a file in place whole, whoever else does.
func replace(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), disk.Temporary)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}
