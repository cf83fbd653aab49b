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
	main, err := p.doc.look(ctx)
	if err != nil {
		return nil, 0, failed(ctx, err)
	}
	for f := range main.all() {
		var found []Image
		if err := p.doc.call(ctx, f, &found, "() => seer.act.images()"); err != nil {
			if ctx.Err() != nil || f == main {
				return nil, 0, failed(ctx, err)
			}
			continue // the frame went away
		}
		images = append(images, found...)
	}
	seen := func(i Image) bool { return i.Visible }
	unseen := func(i Image) bool { return !i.Visible }
	images = append(slices.DeleteFunc(slices.Clone(images), unseen), slices.DeleteFunc(images, seen)...)
	return images[:min(len(images), maxImages)], len(images), nil
}
