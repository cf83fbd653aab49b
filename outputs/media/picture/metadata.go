package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
	"slices"
)

// withoutMetadata is a whole PNG without the chunks that do not say what its pixels are: texts, times, places, further frames.
func withoutMetadata(data []byte) []byte {
	const signature, around = 8, 12 // bytes; a chunk has its length, name and checksum around its content
	bare := bytes.Clone(data[:signature])
	for rest := data[signature:]; len(rest) >= around; {
		size := int64(binary.BigEndian.Uint32(rest)) + around
		if size > int64(len(rest)) {
			break
		}
		switch kind := string(rest[4:8]); kind {
		case "IHDR", "PLTE", "tRNS", "IDAT", "IEND":
			if bare = append(bare, rest[:size]...); kind == "IEND" {
				return bare
			}
		}
		rest = rest[size:]
	}
	return bare
}

// orientation is how the camera was held when a JPEG was made, as EXIF numbers it from 1, which is upright.
func orientation(data []byte) int {
	const upright = 1
	for rest := data[2:]; len(rest) >= 4 && rest[0] == 0xff; {
		marker, size := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if marker == 0xff { // padding
			rest = rest[1:]
			continue
		}
		if marker == 0xda || size < 2 || size+2 > len(rest) { // the image itself
			break
		}
		if exif, ok := bytes.CutPrefix(rest[4:2+size], []byte("Exif\x00\x00")); marker == 0xe1 && ok {
			return orientationOf(exif)
		}
		rest = rest[2+size:]
	}
	return upright
}

// orientationOf finds it in the first directory of a TIFF.
func orientationOf(tiff []byte) int {
	const upright, entry, tag, short = 1, 12, 0x0112, 3
	var order binary.ByteOrder = binary.LittleEndian
	if len(tiff) < 8 {
		return upright
	}
	if string(tiff[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return upright
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < entry {
			break
		}
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if n := int(order.Uint16(entries[8:])); n >= 1 && n <= 8 {
				return n
			}
			break
		}
		entries = entries[entry:]
	}
	return upright
}

// upright turns an image by its orientation.
func upright(m image.Image, orientation int) image.Image {
	if orientation == 1 {
		return m
	}
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	from := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(from, from.Bounds(), m, m.Bounds().Min, draw.Src)
	to := image.NewRGBA(from.Bounds())
	if orientation >= 5 {
		to = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	fromRight := slices.Contains([]int{2, 3, 7, 8}, orientation)
	fromBelow := slices.Contains([]int{3, 4, 6, 7}, orientation)
	for y := range to.Bounds().Dy() {
		for x := range to.Bounds().Dx() {
			fx, fy := x, y
			if orientation >= 5 {
				fx, fy = y, x
			}
			if fromRight {
				fx = w - 1 - fx
			}
			if fromBelow {
				fy = h - 1 - fy
			}
			copy(to.Pix[to.PixOffset(x, y):][:4], from.Pix[from.PixOffset(fx, fy):])
		}
	}
	return to
}
