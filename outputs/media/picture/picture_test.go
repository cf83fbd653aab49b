package picture_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"trajgen/outputs/media/picture"
)

// drawn is an image whose upper left quarter is red, and whose rest is white.
func drawn(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.White)
			if x < w/2 && y < h/2 {
				m.Set(x, y, color.RGBA{R: 255, A: 255})
			}
		}
	}
	return m
}

func encoded(t testing.TB, kind string, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, m)
	case "jpeg":
		err = jpeg.Encode(&b, m, nil)
	case "gif":
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// chunk is a chunk of a PNG.
func chunk(kind, content string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	b = append(b, kind+content...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(kind+content)))
}

// header is a PNG of such a size that holds no pixels.
func header(w, h uint32) []byte {
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	return append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", string(size)+"\x08\x02\x00\x00\x00")...)
}

// withEXIF is a JPEG that says how the camera was held, and where.
func withEXIF(jpeg []byte, orientation byte) []byte {
	tiff := "MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(orientation) + "\x00\x00\x00\x00\x00\x00 51.5 N 0.1 W"
	segment := "Exif\x00\x00" + tiff
	size := binary.BigEndian.AppendUint16(nil, uint16(len(segment)+2))
	return append([]byte("\xff\xd8\xff\xe1"+string(size)+segment), jpeg[2:]...)
}

// webpOf is one white pixel, lossless.
const webpOf = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="

func TestPrepare(t *testing.T) {
	shot := encoded(t, "png", drawn(640, 360))
	commented := append(bytes.Clone(shot[:33]), append(chunk("tEXt", "Place\x0051.5 N"), shot[33:]...)...)
	webp, err := base64.StdEncoding.DecodeString(webpOf)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		give []byte
		mime string
		w, h int
	}{
		{"a screenshot", shot, "image/png", 640, 360},
		{"a comment is dropped", commented, "image/png", 640, 360},
		{"a large PNG", encoded(t, "png", drawn(1600, 500)), "image/png", 1568, 490},
		{"a photograph", encoded(t, "jpeg", drawn(1600, 1200)), "image/jpeg", 1568, 1176},
		{"a photograph of a camera that lay on its side", withEXIF(encoded(t, "jpeg", drawn(400, 300)), 6), "image/jpeg", 300, 400},
		{"a line", encoded(t, "png", drawn(4000, 1)), "image/png", 1568, 1},
		{"a GIF", encoded(t, "gif", drawn(40, 30)), "image/png", 40, 30},
		{"a WebP", webp, "image/jpeg", 1, 1},
	} {
		got, err := picture.Prepare("text/html", tt.give) // what it is said to be does not count
		if err != nil || got.MIME != tt.mime || got.Width != tt.w || got.Height != tt.h {
			t.Errorf("%s: %s %d by %d, %v; want %s %d by %d", tt.name, got.MIME, got.Width, got.Height, err, tt.mime, tt.w, tt.h)
			continue
		}
		config, _, err := image.DecodeConfig(bytes.NewReader(got.Data))
		if err != nil || config.Width != tt.w || config.Height != tt.h {
			t.Errorf("%s: what is sent is %d by %d, %v", tt.name, config.Width, config.Height, err)
		}
		if bytes.Contains(got.Data, []byte("51.5 N")) {
			t.Errorf("%s: it still tells a place", tt.name)
		}
		again, _ := picture.Prepare("", tt.give)
		if !bytes.Equal(got.Data, again.Data) {
			t.Errorf("%s: the same image gives other bytes", tt.name)
		}
	}
	if got, _ := picture.Prepare("", commented); !bytes.Equal(got.Data, shot) {
		t.Error("a PNG without its comment is not the PNG that it was")
	}
}

// TestOrientation holds where the red quarter of a picture comes to lie, for each way to hold a camera.
func TestOrientation(t *testing.T) {
	plain := encoded(t, "jpeg", drawn(80, 40))
	want := map[byte]string{1: "upper left", 2: "upper right", 3: "lower right", 4: "lower left", 5: "upper left", 6: "upper right", 7: "lower right", 8: "lower left"}
	for orientation, where := range want {
		got, err := picture.Prepare("", withEXIF(plain, orientation))
		if err != nil {
			t.Fatal(err)
		}
		m, err := jpeg.Decode(bytes.NewReader(got.Data))
		if err != nil {
			t.Fatal(err)
		}
		b := m.Bounds()
		if tall := orientation >= 5; tall != (b.Dy() > b.Dx()) {
			t.Errorf("orientation %d: %v", orientation, b)
		}
		found := ""
		for place, at := range map[string]image.Point{
			"upper left": {b.Dx() / 4, b.Dy() / 4}, "upper right": {b.Dx() * 3 / 4, b.Dy() / 4},
			"lower left": {b.Dx() / 4, b.Dy() * 3 / 4}, "lower right": {b.Dx() * 3 / 4, b.Dy() * 3 / 4},
		} {
			if _, green, _, _ := m.At(at.X, at.Y).RGBA(); green < 0x8000 {
				found += place
			}
		}
		if found != where {
			t.Errorf("orientation %d: red is %q, want %q", orientation, found, where)
		}
	}
}

func TestUnusable(t *testing.T) {
	shot := encoded(t, "png", drawn(64, 64))
	for _, tt := range []struct {
		name, claimed string
		give          []byte
		want          string
	}{
		{"nothing", "", nil, "empty"},
		{"a bomb", "image/png", append(header(20000, 20000), make([]byte, 48<<10)...), "at most 50 million"},
		{"an overflow", "image/png", header(1<<31-1, 1<<31-1), "image"},
		{"no pixels", "image/png", header(0, 5), "image"},
		{"half an image", "image/png", shot[:len(shot)/2], "its PNG is cut off"},
		{"its beginning", "image/jpeg", []byte("\xff\xd8\xff"), "JPEG"},
		{"wrong magic", "image/png", []byte("GIF89a"), "GIF"},
		{"a page", "image/png", []byte("<html>not found</html>"), `text/html; charset=utf-8, though said to be "image/png"`},
		{"a drawing", "image/svg+xml", []byte(`<?xml version="1.0"?><svg onload="x()"/>`), "SVG"},
		{"a drawing in disguise", "image/png", []byte(`<svg xmlns="x"></svg>`), "SVG"},
		{"a document", "", []byte("%PDF-1.7"), "application/pdf"},
	} {
		_, err := picture.Prepare(tt.claimed, tt.give)
		var unusable *picture.Unusable
		if !errors.As(err, &unusable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func FuzzPrepare(f *testing.F) {
	for _, kind := range []string{"png", "jpeg", "gif"} {
		f.Add(encoded(f, kind, drawn(9, 7)))
	}
	f.Add(withEXIF(encoded(f, "jpeg", drawn(9, 7)), 5))
	f.Add(header(3, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		if config, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && config.Width*config.Height > 1<<20 {
			return // TestUnusable has large ones
		}
		ready, err := picture.Prepare("", data)
		if err != nil {
			return
		}
		m, kind, err := image.Decode(bytes.NewReader(ready.Data))
		if err != nil || "image/"+kind != ready.MIME || m.Bounds().Dx() != ready.Width || m.Bounds().Dy() != ready.Height {
			t.Errorf("what is sent is a %s of %v, %v; it is said to be %s, %d by %d", kind, m, err, ready.MIME, ready.Width, ready.Height)
		}
		if max(ready.Width, ready.Height) > 1568 {
			t.Errorf("%d by %d is too large", ready.Width, ready.Height)
		}
	})
}
