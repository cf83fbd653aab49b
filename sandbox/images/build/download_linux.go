package build

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"trajgen/sandbox"
	"trajgen/sandbox/addresses"
	"trajgen/sandbox/internal/egress"
)

// download is the content of a URL, in a temporary file.
type download struct {
	name, digest string
	path         string
	size         int64
}

const (
	maxDownload  = 4 << 30
	downloadTime = 10 * time.Minute
)

// add carries out ADD.
func (w *work) add(ctx context.Context, s *stage, c *instructions.AddCommand) error {
	var fetched []download
	defer func() {
		for _, d := range fetched {
			_ = os.Remove(d.path)
		}
	}()
	what := c.SourcesAndDest
	what.SourcePaths = nil
	for _, source := range c.SourcePaths {
		lower := strings.ToLower(source)
		switch {
		case strings.HasPrefix(lower, "git@"), strings.HasPrefix(lower, "git://"), strings.HasPrefix(lower, "ssh://"), strings.HasSuffix(lower, ".git"):
			return refuse("a git repository as source is not known here: RUN git clone, in an image that has git")
		case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
			d, err := w.fetch(ctx, source, c.Checksum)
			switch {
			case errors.Is(err, errRefused):
				return &Error{Reason: Network, Err: err}
			case err != nil:
				return &Error{Reason: Download, Err: err}
			}
			fetched = append(fetched, d)
		default:
			what.SourcePaths = append(what.SourcePaths, source)
		}
	}
	if c.Checksum != "" && len(fetched) == 0 {
		return &Error{Reason: Parse, Err: errors.New("--checksum goes with a URL")}
	}
	if len(fetched) > 0 && c.Unpack != nil && *c.Unpack {
		return refuse("--unpack of a URL is not known here: RUN tar after it")
	}
	unpack := c.Unpack == nil || *c.Unpack
	return w.place(ctx, s, w.files, "", what, copyFlags{c.Chown, c.Chmod, c.Link, false, c.ExcludePatterns}, fetched, unpack)
}

// fetch reads a URL, as far as commands of the build could.
func (w *work) fetch(ctx context.Context, text, checksum string) (d download, err error) {
	at, err := url.Parse(text)
	if err != nil {
		return d, err
	}
	d.name = path.Base(at.Path)
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, text, nil)
	if err != nil {
		return d, err
	}
	transport := &http.Transport{DialContext: w.dial, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return d, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return d, fmt.Errorf("%s: %s", text, response.Status)
	}
	file, err := os.CreateTemp("", "trajgen-add-*")
	if err != nil {
		return d, err
	}
	d.path = file.Name()
	sum := sha256.New()
	d.size, err = io.Copy(io.MultiWriter(file, sum), io.LimitReader(response.Body, maxDownload+1))
	d.digest = fmt.Sprintf("sha256:%x", sum.Sum(nil))
	switch err = errors.Join(err, file.Close()); {
	case err != nil:
	case d.size > maxDownload:
		err = fmt.Errorf("%s has more than %d bytes", text, int64(maxDownload))
	case checksum != "" && checksum != d.digest:
		err = fmt.Errorf("%s has the checksum %s, want %s", text, d.digest, checksum)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(d.path))
	}
	return d, err
}

// errRefused means that commands of the build may not reach something.
var errRefused = errors.New("may not be reached")

// allowHint says what lets commands reach more.
const allowHint = "; sandbox.build_allow or --build-allow NAME adds what may be reached"

// dial connects to what commands of the build may reach.
func (w *work) dial(ctx context.Context, network, address string) (net.Conn, error) {
	rules, err := egress.Parse(w.opts.Allow)
	if err != nil {
		return nil, err
	}
	policy := egress.Policy{Full: w.opts.Network == sandbox.NetworkFull, Allow: rules}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	check := func(at netip.Addr) error {
		refused := policy.Check(host, at, uint16(port))
		if own, err := addresses.Own(at, w.opts.Now()); refused == "" && at.IsValid() && (err != nil || own) {
			refused = "it is this machine"
		}
		if refused != "" {
			return fmt.Errorf("%s %w: %s%s", host, errRefused, refused, allowHint)
		}
		return nil
	}
	if err := check(netip.Addr{}); err != nil {
		return nil, err
	}
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return check(at.Addr())
	}}
	return dialer.DialContext(ctx, network, address)
}

// download adds a file that was fetched.
func (c *copying) download(d download, add adder) error {
	if c.into && (d.name == "" || d.name == "/" || d.name == ".") {
		return &Error{Reason: Download, Err: errors.New("the URL ends without a file's name: name the file that it becomes")}
	}
	file, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer file.Close()
	return c.put(&tar.Header{Typeflag: tar.TypeReg, Name: c.target(d.name), Mode: 0o600, Size: d.size, ModTime: time.Unix(0, 0)}, file, add)
}
