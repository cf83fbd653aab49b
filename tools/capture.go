package tools

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// capture keeps the beginning and the end of a command's output as clean text, in bounded memory. The result depends on the
// bytes only and not on how they were split into writes, so that it is the same on a busy machine.
type capture struct {
	limit            int // of the text
	headMax, tailMax int
	unit             string // "chars" or "bytes": what the bounds count
	// tap receives the clean text of every write, with the capture's lock held. Optional; set before the first write.
	tap func(text []byte)

	mu      sync.Mutex // guards the rest
	cleaner cleaner    // its terminal is set before the first write
	scratch []byte
	kept
}

// kept is the content of a capture.
type kept struct {
	head, tail []byte
	headFull   bool
	tailLen    int // units in tail
	total      int // units written, after cleaning
	lines      int // newlines dropped from the front of tail
}

// slack is kept beyond a limit, so that trailing white space, which text removes, does not cause a cut.
const slack = 64

// newCapture keeps 40 % of limit from the beginning and the rest from the end: errors come last.
func newCapture(limit int, unit string) *capture {
	return &capture{limit: limit, headMax: limit * 2 / 5, tailMax: limit - limit*2/5 + slack, unit: unit}
}

// newHead keeps the first limit units.
func newHead(limit int, unit string) *capture {
	return &capture{limit: limit, headMax: limit + slack, unit: unit}
}

// newRolling keeps the last limit characters.
func newRolling(limit int) *capture {
	return &capture{limit: limit, tailMax: limit, unit: "chars", kept: kept{headFull: true}}
}

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scratch = c.cleaner.clean(c.scratch[:0], p, false)
	c.add(c.scratch)
	if c.tap != nil {
		c.tap(c.scratch)
	}
	return len(p), nil
}

func (c *capture) count(p []byte) int {
	if c.unit == "bytes" {
		return len(p)
	}
	return utf8.RuneCount(p)
}

func (c *capture) add(p []byte) {
	c.total += c.count(p)
	if !c.headFull {
		n := c.prefix(p, c.headMax-c.count(c.head))
		c.head = append(c.head, p[:n]...)
		c.headFull = n < len(p)
		p = p[n:]
	}
	c.tail = append(c.tail, p...)
	c.tailLen += c.count(p)
	if c.tailLen > 2*c.tailMax {
		c.shorten()
	}
}

// prefix returns the length of the longest beginning of p that has at most n units and ends with a whole character.
func (c *capture) prefix(p []byte, n int) int {
	if c.unit == "bytes" {
		if n >= len(p) {
			return len(p)
		}
		for n > 0 && !utf8.RuneStart(p[n]) {
			n--
		}
		return n
	}
	at := 0
	for ; n > 0 && at < len(p); n-- {
		_, size := utf8.DecodeRune(p[at:])
		at += size
	}
	return at
}

// shorten cuts tail to its bound.
func (c *capture) shorten() {
	n := c.suffix(c.tail, c.tailMax)
	if n == 0 {
		return
	}
	c.lines += bytes.Count(c.tail[:n], []byte("\n"))
	c.tail = append(c.tail[:0], c.tail[n:]...)
	c.tailLen = c.count(c.tail)
}

// snapshot returns a copy of the content, with what an unfinished character becomes. It does not affect later writes.
func (c *capture) snapshot() kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := capture{headMax: c.headMax, tailMax: c.tailMax, unit: c.unit, kept: c.kept}
	end.head, end.tail = bytes.Clone(c.head), bytes.Clone(c.tail)
	end.add(c.cleaner.clean(nil, nil, true))
	end.shorten()
	return end.kept
}

// text returns the output without trailing white space. Where something had to be left out, a note says so; text and note
// together have at most limit units.
func (c *capture) text() string {
	k := c.snapshot()
	if k.total == c.count(k.head)+k.tailLen {
		text := strings.TrimRight(string(k.head)+string(k.tail), " \t\r\n")
		if c.count([]byte(text)) <= c.limit {
			return text
		}
	}
	first, last, note := k.head, k.tail, c.note(k.total, k.total)
	for range 2 { // a second round may shorten the note, a third never does
		room := max(c.limit-len(note), 0)
		headRoom := room * 2 / 5
		if c.tailMax == 0 {
			headRoom = room
		}
		first = k.head[:c.prefix(k.head, headRoom)]
		last = k.tail[c.suffix(k.tail, room-headRoom):]
		note = c.note(k.total-c.count(first)-c.count(last), k.total)
	}
	return strings.TrimRight(string(first)+note+string(last), " \t\r\n")
}

func (c *capture) note(omitted, total int) string {
	return fmt.Sprintf("\n\n... [output truncated: %s %s omitted out of %s] ...\n\n", thousands(omitted), c.unit, thousands(total))
}

// suffix returns where the longest end of p begins that has at most n units and begins with a whole character.
func (c *capture) suffix(p []byte, n int) int {
	excess := c.count(p) - n
	if excess <= 0 {
		return 0
	}
	at := c.prefix(p, excess)
	for at < len(p) && c.unit == "bytes" && (at < excess || !utf8.RuneStart(p[at])) {
		at++
	}
	return at
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// cleaner turns a stream of bytes into valid UTF-8 without terminal control sequences.
type cleaner struct {
	pending  []byte
	terminal bool // lines end with \r\n, which clean turns into \n
}

// An unfinished control sequence that is longer than this is text.
const maxSequence = 4096

// clean appends the clean form of pending data and p to out. With final set, it also decides unfinished sequences, and leaves
// the cleaner unchanged.
func (c *cleaner) clean(out, p []byte, final bool) []byte {
	in := p
	if len(c.pending) > 0 {
		in = append(append([]byte(nil), c.pending...), p...)
	}
	for i := 0; i < len(in); {
		b := in[i]
		if b == '\r' && c.terminal {
			switch {
			case i+1 < len(in) && in[i+1] == '\n':
				i++
				continue
			case i+1 == len(in) && !final:
				c.keep(in[i:])
				return out
			}
		}
		if b != 0x1b && b < utf8.RuneSelf {
			out = append(out, b)
			i++
			continue
		}
		if b == 0x1b {
			n, whole := sequence(in[i:])
			if !whole && !final && len(in)-i < maxSequence {
				c.keep(in[i:])
				return out
			}
			if !whole && !final {
				n = 1
			}
			i += n
			continue
		}
		if !final && !utf8.FullRune(in[i:]) {
			c.keep(in[i:])
			return out
		}
		r, size := utf8.DecodeRune(in[i:])
		out = utf8.AppendRune(out, r) // an invalid byte becomes U+FFFD
		i += size
	}
	if !final {
		c.pending = nil
	}
	return out
}

func (c *cleaner) keep(p []byte) { c.pending = append([]byte(nil), p...) }

// sequence returns the length of the control sequence at the start of s, which begins with ESC. If it is not a sequence, the
// length is that of ESC. When s ends within it, whole is false and n is what to drop if nothing follows.
func sequence(s []byte) (n int, whole bool) {
	if len(s) == 1 {
		return 1, false
	}
	switch b := s[1]; {
	case b == '[', b >= 0x20 && b <= 0x2f:
		last := byte(0x30) // the first of the bytes that may end it
		if b == '[' {
			last = 0x40
		}
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] >= last && s[i] <= 0x7e:
				return i + 1, true
			case s[i] < 0x20 || s[i] > 0x7e:
				return 1, true
			}
		}
		return len(s), false
	case strings.IndexByte("]PX^_", b) >= 0: // strings, up to BEL or ESC \
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1, true
			case s[i] == '\n':
				return 1, true
			case s[i] == 0x1b && i+1 < len(s):
				if s[i+1] == '\\' {
					return i + 2, true
				}
				return 1, true
			}
		}
		return 1, false
	case b >= 0x30 && b <= 0x7e:
		return 2, true
	}
	return 1, true
}
