package media

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/inconsolata"
	"golang.org/x/image/math/fixed"
)

// localVersion names the renderer. It changes when a prompt gives another picture.
const localVersion = "local/1"

// palette are the colours of the renderer: paper, ink, and those of shapes.
var palette = color.Palette{
	color.RGBA{0xfb, 0xf7, 0xee, 0xff}, color.RGBA{0x1c, 0x1b, 0x22, 0xff}, color.RGBA{0xd6, 0x45, 0x3d, 0xff},
	color.RGBA{0xe8, 0x8d, 0x2f, 0xff}, color.RGBA{0xf2, 0xc9, 0x4c, 0xff}, color.RGBA{0x5a, 0x9e, 0x55, 0xff},
	color.RGBA{0x2f, 0x8f, 0x9d, 0xff}, color.RGBA{0x3d, 0x6c, 0xc4, 0xff}, color.RGBA{0x7b, 0x52, 0xab, 0xff},
	color.RGBA{0xc7, 0x6b, 0x98, 0xff}, color.RGBA{0x8a, 0x67, 0x4c, 0xff}, color.RGBA{0x9a, 0xa3, 0xad, 0xff},
}

const (
	paper, ink  = 0, 1
	firstColour = 2
	shapes      = 14
)

// draw makes a picture of a prompt: shapes that its text decides, and the text itself. It reckons with integers alone, so that
// the same prompt gives the same bytes on every machine.
func draw(prompt string, size image.Point) []byte {
	sum := sha256.Sum256([]byte(prompt))
	rng := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
	canvas := image.NewPaletted(image.Rectangle{Max: size}, palette)
	for range shapes {
		shape(canvas, rng)
	}
	write(canvas, prompt)
	var out bytes.Buffer
	if err := png.Encode(&out, canvas); err != nil { // not of a picture in memory
		panic(err)
	}
	return out.Bytes()
}

// shape draws a disc, a box or a triangle.
func shape(canvas *image.Paletted, rng *rand.Rand) {
	size := canvas.Rect.Max
	unit := min(size.X, size.Y) / 16
	x, y, r := rng.IntN(size.X), rng.IntN(size.Y), unit+rng.IntN(3*unit)
	colour := uint8(firstColour + rng.IntN(len(palette)-firstColour))
	var within func(dx, dy int) bool
	switch rng.IntN(3) {
	case 0:
		within = func(dx, dy int) bool { return dx*dx+dy*dy <= r*r }
	case 1:
		flat := 1 + rng.IntN(3)
		within = func(dx, dy int) bool { return dy*flat <= r && -dy*flat <= r }
	default:
		within = func(dx, dy int) bool { return 2*max(dx, -dx) <= dy+r }
	}
	for dy := max(-r, -y); dy <= r && y+dy < size.Y; dy++ {
		for dx := max(-r, -x); dx <= r && x+dx < size.X; dx++ {
			if within(dx, dy) {
				canvas.Pix[canvas.PixOffset(x+dx, y+dy)] = colour
			}
		}
	}
}

// The cells of the font.
const cellWidth, cellHeight = 8, 18

// write puts a text into a box in the middle, in letters as large as fit.
func write(canvas *image.Paletted, text string) {
	size := canvas.Rect.Max
	var lines []string
	var scale, width int
	for scale = 8; ; scale-- {
		width = (size.X - size.X/8) / (cellWidth * scale)
		room := (size.Y - size.Y/8) / (cellHeight * scale)
		if lines = wrap(text, width); len(lines) <= room || scale == 2 {
			lines = lines[:min(len(lines), room)]
			break
		}
	}
	width = 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line))
	}
	area := image.Point{width * cellWidth, len(lines) * cellHeight}
	letters := image.NewGray(image.Rectangle{Max: area})
	pen := font.Drawer{Dst: letters, Src: image.White, Face: inconsolata.Bold8x16}
	for i, line := range lines {
		pen.Dot = fixed.P(0, i*cellHeight+14)
		pen.DrawString(line)
	}
	corner := size.Sub(area.Mul(scale)).Div(2)
	margin := 4 * scale
	for y := -margin; y < area.Y*scale+margin; y++ {
		for x := -margin; x < area.X*scale+margin; x++ {
			colour := uint8(paper)
			at := image.Point{x, y}
			if at.In(image.Rectangle{Max: area.Mul(scale)}) && letters.GrayAt(x/scale, y/scale).Y >= 0x80 {
				colour = ink
			}
			if p := corner.Add(at); p.In(canvas.Rect) {
				canvas.Pix[canvas.PixOffset(p.X, p.Y)] = colour
			}
		}
	}
}

// wrap breaks a text into lines of at most width characters.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		for _, part := range pieces(word, width) {
			switch together := line + " " + part; {
			case line == "":
				line = part
			case utf8.RuneCountInString(together) <= width:
				line = together
			default:
				lines, line = append(lines, line), part
			}
		}
	}
	return append(lines, line)
}

// pieces cuts a word that is longer than a line.
func pieces(word string, width int) (all []string) {
	letters := []rune(word)
	for ; len(letters) > width; letters = letters[width:] {
		all = append(all, string(letters[:width]))
	}
	return append(all, string(letters))
}
