// Package picture makes images ready for a model: of a known format, upright, not too large, and without metadata.
package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"
)

const (
	maxBytes  = 50 << 20
	maxPixels = 50_000_000
	longSide  = 1568    // beyond it servers scale images down themselves
	maxPNG    = 1 << 20 // a larger one becomes a JPEG
	quality   = 85
)

// Unusable is an image that no model can be shown, in words for who sent it.
type Unusable struct{ Reason string }

func (u *Unusable) Error() string { return "the image cannot be used: " + u.Reason }

func unusable(format string, args ...any) error { return &Unusable{fmt.Sprintf(format, args...)} }

// Ready is an image as a model gets it.
type Ready struct {
	MIME          string // image/png or image/jpeg
	Data          []byte
	Width, Height int
}

// decoding bounds the memory of all images that are being decoded, in pixels.
var decoding = semaphore.NewWeighted(maxPixels)

type format struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var formats = map[string]format{
	"image/png":  {png.DecodeConfig, png.Decode},
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode},
	"image/gif":  {gif.DecodeConfig, gif.Decode}, // the first of several
	"image/webp": {webp.DecodeConfig, webp.Decode},
}

// Check says from an image's first bytes why it cannot be used. Prepare may find more.
func Check(claimed string, data []byte) error {
	_, _, _, err := look(claimed, data)
	return err
}

// look says what an image is. Its first bytes count, whatever claimed says.
func look(claimed string, data []byte) (kind string, w, h int, err error) {
	kind = http.DetectContentType(data)
	f, known := formats[kind]
	switch {
	case len(data) == 0:
		return "", 0, 0, unusable("it is empty")
	case len(data) > maxBytes:
		return "", 0, 0, unusable("it has %d MB (at most %d)", len(data)>>20, maxBytes>>20)
	case !known && (claimed == "image/svg+xml" || bytes.Contains(data[:min(len(data), 1<<10)], []byte("<svg"))):
		return "", 0, 0, unusable("it is an SVG (want PNG, JPEG, GIF or WebP: draw it first)")
	case !known:
		return "", 0, 0, unusable("it is %s%s (want PNG, JPEG, GIF or WebP)", kind, claim(claimed))
	}
	defer func() { // a library met bytes that it did not expect
		if recover() != nil {
			err = unusable("it cannot be read as %s", name(kind))
		}
	}()
	config, err := f.config(bytes.NewReader(data))
	if err != nil {
		return "", 0, 0, unusable("it cannot be read as %s: %v", name(kind), err)
	}
	w, h = config.Width, config.Height
	switch {
	case w <= 0 || h <= 0:
		return "", 0, 0, unusable("it is %d by %d pixels", w, h)
	case w > maxPixels/h:
		return "", 0, 0, unusable("it is %d by %d pixels (at most %d million)", w, h, maxPixels/1_000_000)
	}
	return kind, w, h, nil
}

// Prepare makes an image ready. A PNG that needs no other change loses its metadata and keeps every pixel. The same bytes always give
// the same; an error is an *Unusable.
func Prepare(claimed string, data []byte) (ready Ready, err error) {
	kind, w, h, err := look(claimed, data)
	if err != nil {
		return Ready{}, err
	}
	defer func() { // as in look
		if recover() != nil {
			ready, err = Ready{}, unusable("it cannot be read as %s", name(kind))
		}
	}()
	_ = decoding.Acquire(context.Background(), int64(w*h)) // whoever holds it only computes
	defer decoding.Release(int64(w * h))
	decoded, err := formats[kind].decode(bytes.NewReader(data))
	if err != nil {
		return Ready{}, unusable("its %s is cut off or damaged: %v", name(kind), err)
	}
	if kind == "image/png" && max(w, h) <= longSide {
		if bare := withoutMetadata(data); len(bare) <= maxPNG {
			return Ready{kind, bare, w, h}, nil
		}
	}
	decoded = fitted(decoded)
	if kind == "image/jpeg" {
		decoded = upright(decoded, orientation(data))
	}
	ready = Ready{Width: decoded.Bounds().Dx(), Height: decoded.Bounds().Dy()}
	if kind == "image/png" || kind == "image/gif" {
		if ready.Data, err = encode(decoded, png.Encode); err != nil || len(ready.Data) <= maxPNG {
			ready.MIME = "image/png"
			return ready, err
		}
	}
	ready.MIME = "image/jpeg"
	ready.Data, err = encode(opaque(decoded), func(w io.Writer, m image.Image) error {
		return jpeg.Encode(w, m, &jpeg.Options{Quality: quality})
	})
	return ready, err
}

func name(kind string) string { return strings.ToUpper(strings.TrimPrefix(kind, "image/")) }

func claim(claimed string) string {
	if claimed == "" {
		return ""
	}
	return fmt.Sprintf(", though said to be %.60q", claimed)
}

func encode(m image.Image, as func(io.Writer, image.Image) error) ([]byte, error) {
	var b bytes.Buffer
	if err := as(&b, m); err != nil {
		return nil, unusable("it cannot be written: %v", err)
	}
	return b.Bytes(), nil
}

// fitted scales an image whose longer side is too long.
func fitted(m image.Image) image.Image {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	long := max(w, h)
	if long <= longSide {
		return m
	}
	to := image.NewRGBA(image.Rect(0, 0, max(1, w*longSide/long), max(1, h*longSide/long)))
	xdraw.ApproxBiLinear.Scale(to, to.Bounds(), m, m.Bounds(), draw.Src, nil)
	return to
}

// opaque puts an image that may be transparent on white, as a JPEG has no transparency.
func opaque(m image.Image) image.Image {
	if o, ok := m.(interface{ Opaque() bool }); ok && o.Opaque() {
		return m
	}
	to := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(to, to.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(to, to.Bounds(), m, m.Bounds().Min, draw.Over)
	return to
}
