package page

import (
	"context"
	"slices"
)

// Image is a picture on a page.
type Image struct {
	Src     string `json:"src"`
	Alt     string `json:"alt"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Visible bool   `json:"visible"` // in view
}

const maxImages = 100

// Images are the pictures of all frames, those in view first, and how many there are in all.
func (p *Page) Images(ctx context.Context) (images []Image, total int, err error) {
	ctx, end := p.begin(ctx)
	defer end()
	main, err := p.look(ctx)
	if err != nil {
		return nil, 0, failed(ctx, err)
	}
	for f := range main.all() {
		var found []Image
		if err := p.call(ctx, f, &found, "() => seer.act.images()"); err != nil {
			if ctx.Err() != nil || f == main {
				return nil, 0, failed(ctx, err)
			}
			continue // the frame went away
		}
		images = append(images, found...)
	}
	slices.SortStableFunc(images, func(a, b Image) int {
		switch {
		case a.Visible == b.Visible:
			return 0
		case a.Visible:
			return -1
		}
		return 1
	})
	return images[:min(len(images), maxImages)], len(images), nil
}
