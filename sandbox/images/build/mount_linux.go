package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"trajgen/sandbox"
)

// mount is what a RUN finds at a place while it runs. A layer above those of the stage holds it, and no layer of the image keeps
// what becomes of it.
type mount struct {
	Type   instructions.MountType
	Target string
	Layer  string // "" for a secret
	Secret string // its id
	Env    string // the variable that holds the secret; "" is a file
	Mode   fs.FileMode

	cache *cache // of a cache that commands may change
}

// mount prepares one of the mounts of a RUN.
func (w *work) mount(ctx context.Context, r *command, number int, m *instructions.Mount) error {
	target := m.Target
	if target != "" && !path.IsAbs(target) {
		target = path.Join(r.Dir, target)
	}
	is := mount{Type: m.Type, Target: path.Clean(target)}
	switch m.Type {
	case instructions.MountTypeSecret:
		return w.secret(r, is, m)
	case instructions.MountTypeBind, instructions.MountTypeCache, instructions.MountTypeTmpfs:
	default:
		return refuse("--mount=type=%s is not known here", m.Type)
	}
	if target == "" || is.Target == "/" {
		return &Error{Reason: Parse, Err: fmt.Errorf("--mount=type=%s: it has no target, or the root", m.Type)}
	}
	if slices.ContainsFunc(r.Mounts, func(other mount) bool { return other.Target == is.Target }) {
		return &Error{Reason: Parse, Err: fmt.Errorf("two mounts at %s", is.Target)}
	}
	from, origin := tree(nil), ""
	if m.Type == instructions.MountTypeBind || m.From != "" {
		from = w.files
		if m.From != "" {
			other, err := w.other(ctx, m.From, number)
			if err != nil {
				return err
			}
			view, err := w.see(ctx, other)
			if err != nil {
				return err
			}
			from, origin = view, other.key
		}
	}
	s := &stage{key: "mount"}
	what := []any{"mount", is.Target, m.Source, origin}
	source := path.Clean("/" + m.Source)
	if from != nil && origin == "" {
		content, err := digest(from, []string{source})
		if err != nil {
			return &Error{Reason: Copy, Err: fmt.Errorf("--mount: %s: %w", m.Source, err)}
		}
		what = append(what, content)
	}
	if from == nil {
		mode := int64(0o755)
		if m.Type == instructions.MountTypeTmpfs {
			mode = 0o1777
		}
		if m.Mode != nil {
			mode = int64(*m.Mode)
		}
		h := tar.Header{Typeflag: tar.TypeDir, Name: is.Target + "/", Mode: mode, ModTime: time.Unix(0, 0)}
		if m.UID != nil {
			h.Uid = int(*m.UID)
		}
		if m.GID != nil {
			h.Gid = int(*m.GID)
		}
		what = append(what, h.Mode, h.Uid, h.Gid)
		from = empty{h}
		source = is.Target
	}
	layers, made := w.layers, w.made // it is not one of the image
	err := w.layer(ctx, s, what, func(_ context.Context, add adder) error { return whole(from, source, is.Target, add) })
	w.layers, w.made = layers, made
	is.Layer = s.key
	if m.Type == instructions.MountTypeCache && !m.ReadOnly {
		is.cache = newCache(m, is.Target)
	}
	r.Mounts, r.layers = append(r.Mounts, is), append(r.layers, s.layers...)
	return err
}

// empty is a tree of one directory.
type empty struct{ header tar.Header }

func (e empty) Glob(string) ([]string, error) { return nil, nil }

func (e empty) Walk(name string, visit func(*tar.Header, func() (*os.File, error)) error) error {
	h := e.header
	h.Name = name
	return visit(&h, nil)
}

// whole adds a file, or a directory that hides what lies below.
func whole(from tree, source, target string, add adder) error {
	return from.Walk(source, func(h *tar.Header, open func() (*os.File, error)) error {
		entry := *h
		root := h.Name == source
		entry.Name = path.Join(target, strings.TrimPrefix(h.Name, source))
		switch h.Typeflag {
		case tar.TypeDir:
			if err := add(&entry, nil); err != nil || !root {
				return err
			}
			return add(&tar.Header{Typeflag: tar.TypeReg, Name: entry.Name + "/" + opaque}, nil)
		case tar.TypeReg:
			file, err := open()
			if err != nil {
				return err
			}
			return errors.Join(add(&entry, file), file.Close())
		}
		return add(&entry, nil)
	})
}

// secret prepares a secret, which is never on disk: neither in a layer nor in a key.
func (w *work) secret(r *command, is mount, m *instructions.Mount) error {
	is.Secret = m.CacheID
	if is.Secret == "" {
		is.Secret = path.Base(m.Target)
	}
	if m.Env != nil {
		if is.Env = *m.Env; is.Env == "" {
			is.Env = is.Secret
		}
	}
	if m.Target == "" {
		is.Target = "/run/secrets/" + is.Secret
		if is.Env != "" {
			is.Target = scratch
		}
	}
	is.Mode = 0o400
	if m.Mode != nil {
		is.Mode = fs.FileMode(*m.Mode).Perm()
	}
	if _, ok := w.opts.Secrets[is.Secret]; !ok {
		if m.Required {
			return &Error{Reason: Copy, Err: fmt.Errorf("the secret %s is required, and was not given: --secret id=%s,src=FILE", is.Secret, is.Secret)}
		}
		return nil
	}
	r.Mounts = append(r.Mounts, is)
	return nil
}

// prepare puts the script and the secrets of a command into its sandbox.
func (w *work) prepare(ctx context.Context, r *command, sb sandbox.Sandbox) error {
	var files []sandbox.FileWrite
	if r.Script != "" {
		files = append(files, sandbox.FileWrite{Path: r.Args[0], Data: []byte(r.Script), Mode: 0o755})
	}
	for _, m := range r.Mounts {
		switch {
		case m.Secret == "":
		case m.Env != "":
			r.Env = set(r.Env, m.Env, string(w.opts.Secrets[m.Secret]))
		default:
			files = append(files, sandbox.FileWrite{Path: m.Target, Data: w.opts.Secrets[m.Secret], Mode: m.Mode, Replace: true})
		}
	}
	if err := sb.Files().Write(ctx, files...); err != nil {
		return &Error{Reason: Machine, Err: fmt.Errorf("prepare the command: %w", err)}
	}
	return nil
}
