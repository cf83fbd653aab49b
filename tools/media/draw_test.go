package media_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/png"
	"strings"
	"testing"

	"trajgen/tools/media"
)

// TestDraw holds that a prompt gives the same picture on every machine: its pixels, as a compressor may write them otherwise.
func TestDraw(t *testing.T) {
	for _, tt := range []struct{ prompt, aspect, pixels string }{
		{"A red lighthouse on a cliff at dusk", "landscape", "0335c9e7fc42"},
		{"cat", "square", "1b4f9c96d7af"},
		{"Größe: ¼, naïve, 你好", "portrait", "97e94674ebe5"},
		{strings.Repeat("a very long description of many things ", 100), "landscape", "d207b803aa17"},
		{strings.Repeat("x", 4000), "portrait", "cccc174109e6"},
		{"\x00\x1b[31m\u202e\xff", "square", "ae6fe6e60699"},
	} {
		data := media.Draw(tt.prompt, media.Sizes[tt.aspect])
		if !bytes.Equal(data, media.Draw(tt.prompt, media.Sizes[tt.aspect])) {
			t.Errorf("%.40q: two pictures of one prompt", tt.prompt)
		}
		decoded, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		picture := decoded.(*image.Paletted)
		if picture.Rect.Max != media.Sizes[tt.aspect] || len(data) > 100_000 {
			t.Errorf("%.40q: %v in %d bytes", tt.prompt, picture.Rect, len(data))
		}
		sum := sha256.Sum256(picture.Pix)
		if got := hex.EncodeToString(sum[:6]); got != tt.pixels {
			t.Errorf("%.40q: pixels %s, want %s", tt.prompt, got, tt.pixels)
		}
	}
}

func TestWAV(t *testing.T) {
	whole := wav()
	if seconds, err := media.WAV(whole, int64(len(whole))); seconds != 1 || err != nil {
		t.Errorf("%v seconds, %v", seconds, err)
	}
	if seconds, err := media.WAV(whole[:100], 44+4000); seconds != 0.5 || err != nil { // shorter than its header says
		t.Errorf("%v seconds, %v", seconds, err)
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "header alone": whole[:44], "other file": []byte("\x7fELF and so on and on"), "no rate": append([]byte("RIFF....WAVE"), whole[36:]...),
	} {
		if seconds, err := media.WAV(bad, int64(len(bad))); err == nil {
			t.Errorf("%s: %v seconds", name, seconds)
		}
	}
}

func FuzzWAV(f *testing.F) {
	f.Add(wav()[:64], int64(8044))
	f.Add([]byte("RIFF....WAVEfmt \xff\xff\xff\xff"), int64(20))
	f.Fuzz(func(t *testing.T, head []byte, size int64) {
		if seconds, err := media.WAV(head, size); err == nil && !(seconds >= 0) {
			t.Errorf("%v seconds", seconds)
		}
	})
}

func TestDataURL(t *testing.T) {
	for give, want := range map[string]string{
		"data:image/png;base64,aGVsbG8=": "hello", "data:;base64,aGVsbG8": "hello", "data:image/png;base64,aGVs\nbG8=": "hello",
		"data:image/png;base64,-_-_": "\xfb\xff\xbf",
	} {
		if got, err := media.DataURL(give); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v", give, got, err)
		}
	}
	for _, bad := range []string{"data:", "data:image/png,hello", "data:image/png;base64", "data:image/png;base64,!!!", "data:x;base64," + strings.Repeat("A", 20<<20)} {
		if _, err := media.DataURL(bad); err == nil {
			t.Errorf("%.60s is taken", bad)
		}
	}
}
