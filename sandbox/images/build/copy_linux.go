package build

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/patternmatcher"
	mode "github.com/tonistiigi/dchapes-mode"

	"trajgen/sandbox/images"
)

// copying is a COPY or an ADD, ready to be carried out.
type copying struct {
	from    tree
	view    *images.View // of the stage that is copied to
	names   []copied
	texts   []instructions.SourceContent
	fetched []download
	to      string // absolute, with its links resolved
	into    bool   // to is a directory
	owner   *[2]int
	mode    *mode.Set
	exclude *patternmatcher.PatternMatcher
	unpack  bool // tarballs become what is in them
}

// copied is what is copied: its name in the tree, and with --parents what becomes of the name below the destination.
type copied struct{ Name, Below string }

// copy carries out COPY.
func (w *work) copy(ctx context.Context, s *stage, number int, c *instructions.CopyCommand) error {
	from, origin := tree(w.files), ""
	if c.From != "" {
		name, err := w.expander(w.global)(c.From)
		if err != nil {
			return err
		}
		other, err := w.other(ctx, name, number)
		if err != nil {
			return err
		}
		view, err := w.see(ctx, other)
		if err != nil {
			return err
		}
		from, origin = view, other.key
	}
	return w.place(ctx, s, from, origin, c.SourcesAndDest, copyFlags{c.Chown, c.Chmod, c.Link, c.Parents, c.ExcludePatterns}, nil, false)
}

// other is a stage or an image that files come from.
func (w *work) other(ctx context.Context, name string, number int) (*stage, error) {
	if i, ok := w.named(name, number); ok {
		return w.stage(ctx, i)
	}
	return w.base(ctx, name)
}

type copyFlags struct {
	chown, chmod string
	link         bool
	parents      bool
	exclude      []string
}

// place makes the layer of a COPY or an ADD. origin stands for the content of from; "" asks for the content itself.
func (w *work) place(ctx context.Context, s *stage, from tree, origin string, what instructions.SourcesAndDest, flags copyFlags, fetched []download, unpack bool) error {
	view, err := w.see(ctx, s)
	if err != nil {
		return err
	}
	c := &copying{from: from, view: view, texts: what.SourceContents, fetched: fetched, unpack: unpack}
	if err := c.flags(flags); err != nil {
		return err
	}
	for _, source := range what.SourcePaths {
		if err := c.find(source, flags.parents); err != nil {
			return &Error{Reason: Copy, Err: err}
		}
	}
	dest := s.absolute(what.DestPath)
	c.into = flags.parents || strings.HasSuffix(what.DestPath, "/") || slices.Contains([]string{".", ".."}, path.Base(what.DestPath)) ||
		len(c.names)+len(c.texts)+len(c.fetched) > 1
	c.to = dest
	if !flags.link {
		to, info, err := view.Resolve(dest)
		if err != nil {
			return err
		}
		c.to, c.into = to, c.into || info != nil && info.IsDir()
	}
	if origin == "" {
		if origin, err = c.digest(); err != nil {
			return &Error{Reason: Copy, Err: err}
		}
	}
	var urls []string
	for _, d := range fetched {
		urls = append(urls, d.name+" "+d.digest)
	}
	key := []any{"copy", origin, c.names, c.texts, urls, c.to, c.into, c.owner, flags.chmod, flags.exclude, unpack}
	return w.layer(ctx, s, key, c.fill)
}

// flags reads --chown, --chmod and --exclude.
func (c *copying) flags(f copyFlags) (err error) {
	if f.chown != "" {
		owner, err := ownerOf(c.view, f.chown)
		if err != nil {
			return err
		}
		c.owner = &owner
	}
	if f.chmod != "" {
		set, err := mode.Parse(f.chmod)
		if err != nil {
			return &Error{Reason: Parse, Err: fmt.Errorf("--chmod=%s: want an octal number or letters, such as 755 or u+x: %w", f.chmod, err)}
		}
		c.mode = &set
	}
	c.exclude, err = patternmatcher.New(f.exclude)
	return err
}

// find adds what a source stands for. With --parents, names keep what follows "/./", or all of them.
func (c *copying) find(source string, parents bool) error {
	found, err := c.from.Glob(source)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("%s is not there, or .dockerignore leaves it out", source)
	}
	root := "/"
	if above, _, ok := strings.Cut(source, "/./"); ok && parents {
		roots, err := c.from.Glob(above + "/")
		if err != nil || len(roots) != 1 {
			return fmt.Errorf("%s: %q is not one directory: %w", source, above, cmp.Or(err, fs.ErrInvalid))
		}
		root = roots[0]
	}
	for _, name := range found {
		one := copied{Name: name}
		if parents {
			one.Below = strings.Trim(strings.TrimPrefix(name, root), "/")
		}
		c.names = append(c.names, one)
	}
	return nil
}

// digest covers all that is copied.
func (c *copying) digest() (string, error) {
	var names []string
	for _, one := range c.names {
		names = append(names, one.Name)
	}
	return digest(c.from, names)
}

// fill adds what is copied to a layer.
func (c *copying) fill(_ context.Context, add adder) error {
	above := c.to
	if c.into && (len(c.names) != 1 || !c.isDir(c.names[0].Name)) {
		above += "/."
	}
	if err := parents(c.view, above, c.ownedBy([2]int{}), add); err != nil {
		return err
	}
	for _, one := range c.names {
		if err := c.one(one, add); err != nil {
			return err
		}
	}
	for _, text := range c.texts {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: c.target(text.Path), Mode: 0o644, Size: int64(len(text.Data)), ModTime: time.Unix(0, 0)}
		if err := c.put(h, strings.NewReader(text.Data), add); err != nil {
			return err
		}
	}
	for _, d := range c.fetched {
		if err := c.download(d, add); err != nil {
			return err
		}
	}
	return nil
}

// isDir reports whether a name is that of a directory, whose content is copied.
func (c *copying) isDir(name string) (is bool) {
	done := errors.New("done")
	_ = c.from.Walk(name, func(h *tar.Header, _ func() (*os.File, error)) error {
		is = h.Typeflag == tar.TypeDir
		return done
	})
	return is
}

func (c *copying) target(name string) string {
	if c.into {
		return path.Join(c.to, path.Base(name))
	}
	return c.to
}

func (c *copying) ownedBy(owner [2]int) [2]int {
	if c.owner != nil {
		return *c.owner
	}
	return owner
}

// one copies what a name stands for: a file, or what is in a directory.
func (c *copying) one(what copied, add adder) error {
	to := c.target(what.Name)
	if what.Below != "" {
		to = path.Join(c.to, what.Below)
		if err := parents(c.view, to, c.ownedBy([2]int{}), add); err != nil {
			return err
		}
	} else if c.isDir(what.Name) {
		to = c.to
	}
	return c.from.Walk(what.Name, func(h *tar.Header, open func() (*os.File, error)) error {
		rel := strings.Trim(strings.TrimPrefix(h.Name, what.Name), "/")
		if out, err := c.exclude.MatchesOrParentMatches(strings.TrimPrefix(h.Name, "/")); err != nil || out && h.Name != "/" {
			return err
		}
		entry := *h
		entry.Name = path.Join(to, rel)
		if rel == "" && h.Typeflag == tar.TypeDir {
			if _, info, err := c.view.Resolve(to); err != nil || info != nil {
				return err // it stays as it is
			}
		}
		if h.Typeflag != tar.TypeReg {
			return c.put(&entry, nil, add)
		}
		file, err := open()
		if err != nil {
			return err
		}
		defer file.Close()
		if c.unpack && rel == "" {
			if unpacked, err := c.tarball(file, add); unpacked || err != nil {
				return err
			}
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		return c.put(&entry, file, add)
	})
}

// put adds an entry with the owner and the mode that the instruction wants.
func (c *copying) put(h *tar.Header, content io.Reader, add adder) error {
	if h.Typeflag == tar.TypeDir {
		// A directory of this name in a layer would hide a link or a file, which other builders refuse as well.
		if info, err := c.view.Lstat(h.Name); err != nil || info != nil && !info.IsDir() {
			return errors.Join(err, &Error{Reason: Copy, Err: fmt.Errorf("%s is a directory here, and something else in the image", h.Name)})
		}
	}
	owner := c.ownedBy([2]int{h.Uid, h.Gid})
	h.Uid, h.Gid = owner[0], owner[1]
	if c.mode != nil && h.Typeflag != tar.TypeSymlink {
		h.Mode = modeBits(c.mode.Apply(h.FileInfo().Mode()))
	}
	return add(h, content)
}
