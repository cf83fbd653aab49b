package images

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// assemble makes the layers of an image that are not there, and writes its record.
func (s *Store) assemble(ctx context.Context, ref reference, found *source) (*record, error) {
	name := named{Name: ref.text, Index: found.index, Stamp: found.stamp}
	if have, err := s.adopt(ctx, name, func(r *record) bool { return r.Digest == found.digest }); err != nil || have != nil {
		return have, err
	}
	made, err := s.ensureAll(ctx, ref.text, found.layers)
	if err != nil {
		return nil, err
	}
	names, layers := stack(found.layers, made)
	cover, err := s.cover(names, layers)
	if err != nil {
		return nil, err
	}
	if cover != nil {
		if _, err := s.ensureAll(ctx, ref.text, []part{*cover}); err != nil {
			return nil, err
		}
		names = append([]string{cover.name}, names...)
	}
	r := &record{
		Digest: found.digest, Env: found.config.Env, Workdir: found.config.WorkingDir, User: found.config.User,
		Layers: names, Fetched: s.opts.Now().UTC(),
	}
	for _, l := range layers {
		r.Bytes += l.Bytes
	}
	err = s.locked(ctx, func() error {
		all, err := s.records()
		if err != nil {
			return err
		}
		for _, old := range all {
			if old.Digest == r.Digest {
				r.References = old.References
			}
		}
		if err := s.use("image " + r.Digest); err != nil {
			return err
		}
		return s.rename(all, r, name)
	})
	return r, err
}

// ensureAll makes the layers that are not there, several at once.
func (s *Store) ensureAll(ctx context.Context, image string, parts []part) ([]layer, error) {
	err := s.locked(ctx, func() error {
		var use []string
		for _, p := range parts {
			use = append(use, "layer "+p.name)
		}
		return s.use(use...)
	})
	if err != nil {
		return nil, err
	}
	made := make([]layer, len(parts))
	b := s.newBudget()
	group, ctx := errgroup.WithContext(ctx)
	for i, p := range parts {
		group.Go(func() (err error) {
			made[i], err = s.ensure(ctx, image, p, b)
			return err
		})
	}
	return made, group.Wait()
}

// stack orders the layers of an image, which are given with the lowest first, the other way round, and leaves out what
// does not count: layers without a file, those below one that hides all, and all but the uppermost of those that are
// there several times, which the kernel does not take. One is always left.
func stack(parts []part, made []layer) (names []string, layers []layer) {
	for i, p := range slices.Backward(parts) {
		last := made[i].OpaqueRoot || i == 0
		if made[i].Entries > 0 && !slices.Contains(names, p.name) || last && len(names) == 0 {
			names, layers = append(names, p.name), append(layers, made[i])
		}
		if made[i].OpaqueRoot {
			break
		}
	}
	return names, layers
}
