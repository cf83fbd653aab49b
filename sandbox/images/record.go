package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"trajgen/sandbox"
)

// record is the store's record of an image.
type record struct {
	Digest     string   `json:"digest"`
	References []named  `json:"references"`
	Env        []string `json:"env"`
	Workdir    string   `json:"workdir"`
	User       string   `json:"user"`
	// Config is the whole configuration, for builds on top of the image. Records of older versions have none.
	Config  *v1.Config `json:"config,omitempty"`
	Layers  []string   `json:"layers"` // names, the uppermost first
	Bytes   int64      `json:"bytes"`  // of all layers, as tarballs
	Fetched time.Time  `json:"fetched"`
}

// named is a reference that resolved to an image. Index is the digest of an index for several kinds of machines, or the stamp
// of a file; "" is the image itself.
type named struct {
	Name  string `json:"name"`
	Index string `json:"index,omitempty"`
}

func (r *record) image() sandbox.Image {
	if r == nil {
		return sandbox.Image{}
	}
	image := sandbox.Image{Digest: r.Digest, Env: r.Env, Workdir: r.Workdir, User: r.User}
	if r.Config != nil {
		image.Entrypoint, image.Command = r.Config.Entrypoint, r.Config.Cmd
	}
	for _, name := range r.Layers {
		image.Layers = append(image.Layers, filepath.Join("layers", name))
	}
	return image
}

// is reports whether a digest or a stamp means this image on this machine.
func (r *record) is(digest string) bool {
	return r.Digest == digest || slices.ContainsFunc(r.References, func(n named) bool { return n.Index == digest })
}

func (r *record) has(name string) bool {
	return slices.ContainsFunc(r.References, func(n named) bool { return n.Name == name })
}

// forget removes a name and reports whether it was there.
func (r *record) forget(name string) bool {
	before := len(r.References)
	r.References = slices.DeleteFunc(r.References, func(n named) bool { return n.Name == name })
	return len(r.References) < before
}

// known returns the stored image of a reference, or nil if it is missing or the reference may mean another one by now.
func (s *Store) known(ctx context.Context, ref reference) (*record, error) {
	digest := ref.digest
	var err, silent error
	switch {
	case digest != "":
	case ref.kind == fromBuild:
		have, err := s.adopt(ctx, named{Name: ref.text}, func(r *record) bool { return r.has(ref.text) })
		if have == nil && err == nil {
			err = errors.New("no image was built under this name: trajgen image build -t NAME does so")
		}
		return have, err
	case ref.kind == fromTar:
		digest, _, err = stampOf(ref.path)
	case ref.kind == fromRegistry:
		head, err := remote.Head(ref.remote, remoteOptions(ctx)...)
		if err == nil {
			digest = head.Digest.String()
		} else if unreachable(err) {
			silent = err
		}
		// Some registries answer only full requests; those also give better errors.
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil || digest == "" && silent == nil {
		return nil, err
	}
	if silent == nil {
		return s.adopt(ctx, named{ref.text, digest}, func(r *record) bool { return r.is(digest) })
	}
	have, err := s.adopt(ctx, named{Name: ref.text}, func(r *record) bool { return r.has(ref.text) })
	if have == nil || err != nil {
		return nil, errors.Join(fmt.Errorf("ask the registry: %w", silent), err)
	}
	s.opts.Logger.Warn("registry does not answer: the image is the one that its tag meant before", "image", ref.text, "digest", have.Digest, "err", silent)
	return have, nil
}

// adopt marks a stored image as used, and records the name that was requested. It returns nil when there is none.
func (s *Store) adopt(ctx context.Context, name named, fits func(*record) bool) (*record, error) {
	var adopted *record
	err := s.disk.recorded(ctx, func(all []*record) error {
		i := slices.IndexFunc(all, fits)
		if i < 0 {
			return nil
		}
		r := all[i]
		for _, layer := range r.Layers {
			if have, err := s.disk.layer(layer); err != nil || have == nil {
				return err // a user removed its files: fetch it again
			}
		}
		if name.Index == r.Digest {
			name.Index = ""
		}
		if !slices.Contains(r.References, name) && (name.Index != "" || !r.has(name.Name)) {
			if err := s.disk.rename(all, r, name); err != nil {
				return err
			}
		}
		adopted = r
		return s.disk.use("image " + r.Digest)
	})
	return adopted, err
}

// assemble makes the missing layers of an image, and writes its record.
func (s *Store) assemble(ctx context.Context, ref reference, found *source) (*record, error) {
	name := named{ref.text, found.index}
	if have, err := s.adopt(ctx, name, func(r *record) bool { return r.Digest == found.digest }); err != nil || have != nil {
		return have, err
	}
	made, err := s.ensureAll(ctx, ref.text, found.layers)
	if err != nil {
		return nil, err
	}
	names, layers := stack(found.layers, made)
	cover, err := s.disk.cover(names, layers)
	if err != nil {
		return nil, err
	}
	if cover != nil {
		if _, err := s.ensureAll(ctx, ref.text, []part{*cover}); err != nil {
			return nil, err
		}
		names = slices.Insert(names, 0, cover.name)
	}
	r := &record{
		Digest: found.digest, Env: found.config.Env, Workdir: found.config.WorkingDir, User: found.config.User, Config: &found.config,
		Layers: names, Fetched: s.opts.Now().UTC(),
	}
	for _, l := range layers {
		r.Bytes += l.Bytes
	}
	return r, s.disk.recorded(ctx, func(all []*record) error {
		for _, old := range all {
			if old.Digest == r.Digest {
				r.References = old.References
			}
		}
		if err := s.disk.use("image " + r.Digest); err != nil {
			return err
		}
		return s.disk.rename(all, r, name)
	})
}

// rename makes a name mean one image only. The caller holds the store's lock.
func (d *disk) rename(all []*record, to *record, name named) error {
	for _, r := range all {
		if r.Digest != to.Digest && r.forget(name.Name) {
			if err := d.save(r); err != nil {
				return err
			}
		}
	}
	to.forget(name.Name)
	to.References = append(to.References, name)
	return d.save(to)
}

// use marks something as used by this store, so that it is not removed. The caller holds the store's lock.
func (d *disk) use(what ...string) error {
	_, err := io.WriteString(d.user, strings.Join(what, "\n")+"\n")
	return err
}

// used returns what open stores have marked. The caller holds the store's lock.
func (d *disk) used() (map[string]bool, error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, "users"))
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, entry := range entries {
		file, dead, err := openHeld(filepath.Join(d.dir, "users", entry.Name()))
		if err != nil {
			return nil, err
		}
		if file == nil {
			continue
		}
		var data []byte
		if !dead {
			data, err = io.ReadAll(file)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			used[strings.TrimSuffix(line, "\n")] = true
		}
	}
	return used, nil
}

// recorded runs do with the records of all images, by digest, while it holds the store's lock.
func (d *disk) recorded(ctx context.Context, do func(all []*record) error) error {
	return d.locked(ctx, func() error {
		all, err := d.records()
		if err != nil {
			return err
		}
		return do(all)
	})
}

func (d *disk) records() ([]*record, error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, "images"))
	if err != nil {
		return nil, err
	}
	var all []*record
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue // it was never finished
		}
		path := filepath.Join(d.dir, "images", entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r := &record{}
		if err := json.Unmarshal(data, r); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (d *disk) recordPath(digest string) string {
	return filepath.Join(d.dir, "images", strings.Replace(digest, ":", "-", 1)+".json")
}

func (d *disk) save(r *record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(d.recordPath(r.Digest), append(data, '\n'))
}
