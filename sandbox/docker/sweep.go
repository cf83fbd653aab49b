package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
)

// sweep removes what a dead runner's instance left in its engine.
func sweep(ctx context.Context, instance sandbox.Instance) error {
	name, _, _ := strings.Cut(instance.Name, "-")
	label := instance.Settings[settingLabel]
	if label == "" {
		return nil // the runner died before it made anything
	}
	engine, err := connect(ctx, name, instance.Settings)
	if err != nil {
		return err
	}
	return bounded(errors.Join(removeAll(ctx, engine, label), engine.Close()))
}

// removeAll removes containers, images and volumes with the label of an instance.
func removeAll(ctx context.Context, engine *engine, label string) error {
	ours := client.Filters{}.Add("label", labelInstance+"="+label)
	containers, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	// Those with the network of another go first: podman removes no container whose network others have.
	shares := func(c container.Summary) int { return -strings.Count(c.HostConfig.NetworkMode, "container:") }
	slices.SortStableFunc(containers.Items, func(a, b container.Summary) int { return cmp.Compare(shares(a), shares(b)) })
	var errs []error
	for _, c := range containers.Items {
		errs = append(errs, remove(ctx, engine, c.ID))
	}
	images, err := engine.ImageList(ctx, client.ImageListOptions{All: true, Filters: ours})
	if err != nil {
		errs = append(errs, fmt.Errorf("list images: %w", err))
	}
	// Some are based on others, and go first.
	left := map[string]error{}
	for _, m := range images.Items {
		left[m.ID] = nil
	}
	for removed := true; removed; {
		removed = false
		for id := range left {
			if _, left[id] = engine.ImageRemove(ctx, id, client.ImageRemoveOptions{Force: true}); left[id] == nil || errdefs.IsNotFound(left[id]) {
				delete(left, id)
				removed = true
			}
		}
	}
	for id, err := range left {
		errs = append(errs, fmt.Errorf("remove image %s: %w", id, err))
	}
	volumes, err := engine.VolumeList(ctx, client.VolumeListOptions{Filters: ours})
	if err != nil {
		errs = append(errs, fmt.Errorf("list volumes: %w", err))
	}
	for _, v := range volumes.Items {
		if _, err := engine.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true}); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove volume %s: %w", v.Name, err))
		}
	}
	return errors.Join(errs...)
}
