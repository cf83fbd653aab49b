package log

import (
	"bufio"
	"fmt"
)

// ReadLine returns a line with its end, of at most so many bytes, in memory of its own. The last one may come with io.EOF.
func ReadLine(r *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, fmt.Errorf("it is longer than %d MiB", most>>20)
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}
