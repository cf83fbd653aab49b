package tools

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
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

var (
	// controls are control sequences: ESC [ up to a letter or sign, strings up to BEL or ESC \, what selects character sets, and
	// those of two characters. Of what only begins like one, ESC is removed alone.
	controls = regexp.MustCompile(`\x1b(\[[ -?]*[@-~]|[\]PX^_][^\x07\x1b\n]*(\x07|\x1b\\)|[ -/]+[0-~]|[0-OQ-WYZ\\` + "`" + `a-~]|)`)
	// unfinished are those that more output may complete, and unended are removed at its end.
	unfinished = regexp.MustCompile(`\x1b(\[[ -?]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[ -/]+|)$`)
	unended    = regexp.MustCompile(`\x1b(\[[ -?]*|[ -/]+)$`)
)

// An unfinished control sequence that is longer than this is text.
const maxSequence = 4096

// clean appends the clean form of pending data and p to out. With final set, it also decides unfinished sequences, and leaves
// the cleaner unchanged.
func (c *cleaner) clean(out, p []byte, final bool) []byte {
	in := slices.Concat(c.pending, p)
	if final {
		in = unended.ReplaceAll(in, nil)
	} else {
		end := len(in) - c.undecided(in)
		in, c.pending = in[:end], bytes.Clone(in[end:])
	}
	if c.terminal {
		in = bytes.ReplaceAll(in, []byte("\r\n"), []byte("\n"))
	}
	in = controls.ReplaceAll(in, nil)
	if !utf8.Valid(in) {
		in = []byte(string([]rune(string(in)))) // each invalid byte becomes U+FFFD
	}
	return append(out, in...)
}

// undecided is the length of the end of a text whose meaning depends on what follows.
func (c *cleaner) undecided(in []byte) int {
	if at := unfinished.FindIndex(in); at != nil && len(in)-at[0] < maxSequence {
		return len(in) - at[0]
	}
	if c.terminal && bytes.HasSuffix(in, []byte("\r")) {
		return 1
	}
	for n := min(len(in), utf8.UTFMax-1); n > 0; n-- {
		if last := in[len(in)-n:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return n
		}
	}
	return 0
}
