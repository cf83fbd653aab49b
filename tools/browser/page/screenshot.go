package page

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// Screenshot is a PNG of what is in view of the page, with annotate with the refs drawn over their elements.
func (p *Page) Screenshot(ctx context.Context, annotate bool) ([]byte, error) {
	ctx, end := p.begin(ctx)
	defer end()
	shot, err := p.doc.screenshot(ctx, annotate)
	return shot, failed(ctx, err)
}

func (d *document) screenshot(ctx context.Context, annotate bool) ([]byte, error) {
	var marks []mark
	if annotate {
		seen, err := d.walk(ctx) // so that all have refs
		if err != nil {
			return nil, err
		}
		main, err := d.top()
		if err != nil {
			return nil, err
		}
		refs := map[*frame][]int{}
		for _, it := range seen.items {
			if it.Ref != 0 && it.Where == 0 {
				refs[it.in] = append(refs[it.in], it.Ref)
			}
		}
		if marks, err = d.marks(ctx, main, refs, image.Rect(0, 0, 1<<15, 1<<15)); err != nil {
			return nil, err
		}
	}
	params := cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormatPng}
	shot, err := cdp.Call(ctx, d.session, cdppage.CaptureScreenshot, params)
	if err != nil {
		return nil, err
	}
	if len(marks) == 0 {
		return shot.Data, nil
	}
	return drawn(shot.Data, marks)
}

// mark is a ref with the place of its element.
type mark struct {
	ref string
	at  image.Rectangle
}

// marks are where the elements of a frame and of its frames are, within a part of the view.
func (d *document) marks(ctx context.Context, f *frame, refs map[*frame][]int, clip image.Rectangle) ([]mark, error) {
	var found struct {
		Marks []struct {
			Ref        int
			X, Y, W, H float64
		}
		Inner []struct {
			Frame      int
			X, Y, W, H float64
		}
	}
	if err := d.call(ctx, f, &found, "numbers => seer.act.marks(numbers)", refs[f]); err != nil {
		return nil, err
	}
	place := func(x, y, w, h float64) image.Rectangle {
		return image.Rect(int(x), int(y), int(x+w), int(y+h)).Add(clip.Min).Intersect(clip)
	}
	var all []mark
	for _, m := range found.Marks {
		if at := place(m.X, m.Y, m.W, m.H); !at.Empty() {
			all = append(all, mark{(&item{Ref: m.Ref, in: f}).id(), at})
		}
	}
	for _, inner := range found.Inner {
		for _, kid := range f.kids {
			if kid.number == inner.Frame {
				more, err := d.marks(ctx, kid, refs, place(inner.X, inner.Y, inner.W, inner.H))
				if err != nil {
					return nil, err
				}
				all = append(all, more...)
			}
		}
	}
	return all, nil
}

var inks = []color.RGBA{{200, 0, 0, 255}, {0, 90, 200, 255}, {0, 120, 40, 255}, {150, 0, 150, 255}, {170, 90, 0, 255}}

// drawn is a picture with boxes and refs over it.
func drawn(data []byte, marks []mark) ([]byte, error) {
	shot, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	canvas := image.NewRGBA(shot.Bounds())
	draw.Draw(canvas, canvas.Bounds(), shot, shot.Bounds().Min, draw.Src)
	fill := func(r image.Rectangle, c color.Color) {
		draw.Draw(canvas, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	face := basicfont.Face7x13
	for i, m := range marks {
		ink, r := inks[i%len(inks)], m.at
		for _, edge := range []image.Rectangle{
			{r.Min, image.Pt(r.Max.X, r.Min.Y+1)}, {image.Pt(r.Min.X, r.Max.Y-1), r.Max},
			{r.Min, image.Pt(r.Min.X+1, r.Max.Y)}, {image.Pt(r.Max.X-1, r.Min.Y), r.Max},
		} {
			fill(edge, ink)
		}
		// The label stands above the box, where there is room.
		label := image.Rect(0, 0, face.Advance*len(m.ref)+2, face.Height)
		corner := image.Pt(r.Min.X, max(r.Min.Y-label.Dy(), 0))
		fill(label.Add(corner), ink)
		d := font.Drawer{Dst: canvas, Src: image.White, Face: face, Dot: fixed.P(corner.X+1, corner.Y+face.Ascent)}
		d.DrawString(m.ref)
	}
	var out bytes.Buffer
	err = png.Encode(&out, canvas)
	return out.Bytes(), err
}
