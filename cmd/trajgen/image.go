package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/progress"
	"trajgen/sandbox/images"
)

func newImage(std stdio) *cobra.Command {
	dir := run.ImageDir()
	cmd := &cobra.Command{
		Use: "image", Short: "Build, fetch, list and remove images that sandboxes begin with",
		Long: `Keeps the images of sandboxes on disk, unpacked. A run fetches what it needs by itself; pull does so beforehand.

An image is a NAME[:TAG][@sha256:DIGEST] in a registry, oci:PATH[:TAG] (a layout, or a tarball of one),
docker-archive:PATH[:TAG] (of docker save), dir:PATH, tar:PATH (of a root file system), built:NAME (see build), or a path that begins with / or .
for whichever of these lies there.`,
	}
	cmd.PersistentFlags().StringVar(&dir, "image-dir", dir, "directory that images are kept in")
	return group(cmd, newImagePull(std, &dir), newImageList(std, &dir), newImageRemove(std, &dir), newImageBuild(std, &dir))
}

func newImagePull(std stdio, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "pull REF...", Short: "Fetch images and unpack them", Args: cobra.MinimumNArgs(1),
		Long: "Fetches images and unpacks them, unless they are there. Each one's digest is printed: with it, REF@DIGEST is the same image for good.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return interrupted(cmd.Context(), func(ctx context.Context) error { return pull(ctx, std, *dir, args) })
		},
	}
}

func pull(ctx context.Context, std stdio, dir string, references []string) (err error) {
	width, bar := terminal(std.err)
	var show *progress.Layers
	opts := images.Options{Dir: dir}
	if bar {
		show = progress.NewLayers(std.err, width)
		opts.Progress = show.Observe
	} else {
		opts.Logger = slog.New(slog.NewTextHandler(std.err, nil))
	}
	store, err := images.Open(opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var failed []error
	for _, reference := range references {
		image, err := store.Find(ctx, reference)
		show.Clear()
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(std.out, "%s\t%s\n", reference, image.Digest)
	}
	return errors.Join(failed...)
}

// useImages opens a store without fetching images.
func useImages(dir string, do func(*images.Store) error) (err error) {
	store, err := images.Open(images.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(store)
}

func newImageList(std stdio, dir *string) *cobra.Command {
	all := func(ctx context.Context) (stored []images.Stored, err error) {
		err = useImages(*dir, func(store *images.Store) error {
			stored, err = store.List(ctx)
			return err
		})
		return stored, err
	}
	return listing(std, "list", "List the images that are on disk", all, func(w io.Writer, image images.Stored) {
		use := ""
		if image.InUse {
			use = "in use"
		}
		fmt.Fprintf(w, "%s\t%s\t%d layers\t%.1f MB\t%s\t%s\n", cmp.Or(strings.Join(image.References, ","), "(none)"), image.Digest, image.Layers,
			float64(image.Bytes)/1e6, image.Fetched.Format(time.RFC3339), use)
	})
}

func newImageRemove(std stdio, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "remove REF...", Short: "Remove images, by reference or digest", Args: cobra.MinimumNArgs(1),
		Long: "Removes images by reference or digest (sha256:...), and the layers that no other image has. One that a run uses stays.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return useImages(*dir, func(store *images.Store) error {
				var failed []error
				for _, reference := range args {
					if err := store.Remove(cmd.Context(), reference); err != nil {
						failed = append(failed, err)
						continue
					}
					fmt.Fprintln(std.out, reference)
				}
				return errors.Join(failed...)
			})
		},
	}
}
