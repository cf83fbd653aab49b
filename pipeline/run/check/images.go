package check

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
)

// shows notes which images an episode names.
func (v *Verification) shows(ep *episode.Episode) {
	for _, image := range ep.Images() {
		if v.shown == nil {
			v.shown = map[string]string{}
		}
		if _, known := v.shown[image.SHA256]; !known {
			v.shown[image.SHA256] = ep.ID
		}
	}
}

// images reads each image that an episode names.
func (v *Verification) images() {
	store := media.Open(media.Dir(v.Run))
	for _, name := range slices.Sorted(maps.Keys(v.shown)) {
		if _, err := store.Read(name); err != nil {
			v.differ("images: %v; episode %s has it", err, v.shown[name])
		}
	}
}

// mergeImages takes over the images of merged episodes from the runs.
func mergeImages(ctx context.Context, reader *journal.Reader, from []string, dir string) error {
	var stores []*media.Store
	for _, run := range from {
		if _, err := os.Stat(media.Dir(run)); err == nil {
			stores = append(stores, media.Open(media.Dir(run)))
		}
	}
	if len(stores) == 0 {
		return nil
	}
	into := media.Open(media.Dir(dir))
	for _, part := range []*journal.Reader{reader, reader.Uncounted()} {
		for ep, err := range export.Ahead(part).Episodes(ctx) {
			if err != nil {
				return err
			}
			var missing error
			for _, store := range stores { // an episode has all of its images from one run
				if missing = into.Copy(store, ep); missing == nil {
					break
				}
			}
			if missing != nil {
				return fmt.Errorf("merge the images of episode %s: %w", ep.ID, missing)
			}
		}
	}
	return nil
}
