package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"trajgen/outputs/log"
)

// frames have an inside: its kind, its readable head and a blob.
var tapeFrames = log.Format[struct{}]{Magic: "\xf7tp\x01", Head: 12, SizeAt: sizeAt, SumAt: 8, Max: maxFrame, Parse: func(head, _ []byte) (none struct{}, err error) {
	if binary.LittleEndian.Uint32(head[sizeAt:]) < 2 {
		err = errors.New("it has no kind")
	}
	return none, err
}}

const sizeAt = 4

type kind byte

const (
	sessionFrame  kind = 's'
	toolsFrame    kind = 't'
	exchangeFrame kind = 'x'
	resumeFrame   kind = 'r'
)

// gap is a place without a whole frame.
type gap struct{ from, to int64 }

// scan goes through the frames of a tape. tail is where the last whole one ends: what lies behind it was being written
// when its writer died. A gap has whole frames behind it: that is damage.
func scan(file *os.File, each func(at int64, inside []byte) error) (tail, size int64, gaps []gap, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, nil, err
	}
	size = info.Size()
	first := make([]byte, len(magic))
	if n, err := file.ReadAt(first, 0); err != nil && err != io.EOF {
		return 0, 0, nil, err
	} else if string(first[:n]) != magic[:n] {
		return 0, 0, nil, fmt.Errorf("%s is not a tape", file.Name())
	} else if n < len(magic) {
		return 0, size, nil, nil
	}
	tail = int64(len(magic))
	for part, err := range tapeFrames.Parts(file, tail, size, true) {
		if err != nil {
			return 0, 0, nil, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if part.Broken != nil {
			continue
		}
		if part.From > tail {
			gaps = append(gaps, gap{tail, part.From})
		}
		if err := each(part.From, part.Payload); err != nil {
			return 0, 0, nil, err
		}
		tail = part.To
	}
	return tail, size, gaps, nil
}
