package page

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"

	"trajgen/tools/internal/chars"
)

// What a snapshot shows, in characters.
const (
	textLimit  = 8000 // of a snapshot, or of a page of a full one
	shortText  = 160  // of a text, unless the snapshot is full
	maxIndent  = 20
	goneLimit  = 5   // lines that are gone since the last snapshot
	goneLength = 100 // of one of these
)

// line is an item as it is shown.
type line struct {
	item
	text   string // without its indent
	parent int    // index of the line that it stands below, -1 at the top
	size   int
}

// show is the text of what was seen, and the number of pages that a full snapshot of it has.
func (l *last) show(s *seen, o SnapshotOptions) (text string, parts int) {
	lines := layout(s.items, o.Full)
	var notes []string
	if s.Loading {
		notes = append(notes, "The page is still loading.")
	}
	if s.Modal {
		notes = append(notes, "A dialog is open: what is behind it cannot be used, and is not shown, until the dialog is closed.")
	}
	if len(lines) == 0 {
		notes = append(notes, "The page shows nothing.")
	}
	notes = append(notes, l.compare(s, lines)...)
	shown, after, parts := choose(lines, o)
	if s.left > 0 {
		after = append(after, fmt.Sprintf("%d more elements of this large page were not looked at: scroll to those that you need, "+
			"or search on the page if it has a search field.", s.left))
	}
	var b strings.Builder
	for _, note := range notes {
		b.WriteString("# " + note + "\n")
	}
	l.shown = l.shown[:0]
	for _, i := range shown {
		b.WriteString(strings.Repeat("  ", min(lines[i].Depth, maxIndent)) + "- " + lines[i].text + "\n")
		l.shown = append(l.shown, shownLine{lines[i].key(), lines[i].text})
	}
	for _, note := range after {
		b.WriteString("# " + note + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), parts
}

// layout makes lines of items.
func layout(items []item, full bool) []line {
	lines := make([]line, 0, len(items))
	above := []int{} // the lines that the next one may stand below
	skip := -1       // deeper items belong to one that is left out
	shift := []int{} // depths of wrappers that are left out
	for n, it := range items {
		if skip >= 0 && it.Depth > skip {
			continue
		}
		skip = -1
		for len(shift) > 0 && it.Depth <= shift[len(shift)-1] {
			shift = shift[:len(shift)-1]
		}
		if !full && it.Extra {
			skip = it.Depth
			continue
		}
		if !full && wraps(items, n) {
			shift = append(shift, it.Depth)
			continue
		}
		it.Depth -= len(shift)
		for len(above) > 0 && lines[above[len(above)-1]].Depth >= it.Depth {
			above = above[:len(above)-1]
		}
		l := line{item: it, text: it.line(full), parent: -1}
		l.size = utf8.RuneCountInString(l.text) + 2*min(it.Depth, maxIndent) + 3
		if len(above) > 0 {
			l.parent = above[len(above)-1]
		}
		above = append(above, len(lines))
		lines = append(lines, l)
	}
	return lines
}

// wraps says that an item says nothing itself, and holds what can be understood without it.
func wraps(items []item, n int) bool {
	it := items[n]
	if it.Ref != 0 || it.Name != "" || it.Text != "" || len(it.States) > 0 {
		return false
	}
	if it.Role != "listitem" {
		return it.Role == "paragraph" || it.Role == "rowgroup"
	}
	kids := 0
	for _, below := range items[n+1:] {
		if below.Depth <= it.Depth {
			break
		}
		if below.Depth == it.Depth+1 {
			kids++
		}
	}
	return kids <= 1
}

// id is the ref of an item as it is written; "" without one.
func (it *item) id() string {
	switch {
	case it.Ref == 0:
		return ""
	case it.in.number == 0:
		return "e" + strconv.Itoa(it.Ref)
	}
	return fmt.Sprintf("f%de%d", it.in.number, it.Ref)
}

// line is what an item says.
func (it *item) line(full bool) string {
	var b strings.Builder
	b.WriteString(it.Role)
	if it.Name != "" {
		b.WriteString(" " + quote(it.Name))
	}
	if it.Ref != 0 {
		b.WriteString(" [ref=" + it.id() + "]")
	}
	for _, state := range it.States {
		b.WriteString(" [" + state + "]")
	}
	switch {
	case it.Value != "":
		b.WriteString(": " + quote(it.Value))
	case it.Text != "" && it.Text != it.Name:
		text := it.Text
		if !full {
			text = shorten(text, shortText)
		}
		b.WriteString(": " + quote(text))
	case it.Role == "canvas":
		b.WriteString(": drawn by a script; browser_vision shows it")
	}
	return b.String()
}

// quote writes a text of the page so that it cannot be taken for another line or a ref.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}

// squeeze makes one space of each run of white space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func shorten(s string, n int) string { return chars.First(s, n, "…") }

// choose says which lines are shown, and what of the page is not.
func choose(lines []line, o SnapshotOptions) (shown []int, notes []string, parts int) {
	if o.Full {
		return part(lines, max(o.Part, 1))
	}
	taken := make([]bool, len(lines))
	room := textLimit
	full := false
	for _, where := range []int{0, 1, -1} {
		for i := range lines {
			if full || lines[i].Where != where || taken[i] {
				continue
			}
			need := []int{}
			cost := 0
			for j := i; j >= 0 && !taken[j]; j = lines[j].parent {
				need = append(need, j)
				cost += lines[j].size
			}
			if full = cost > room && len(need) < len(lines); full {
				continue
			}
			room -= cost
			for _, j := range need {
				taken[j] = true
			}
		}
	}
	above, below, inView := 0, 0, 0
	for i, yes := range taken {
		switch {
		case yes:
			shown = append(shown, i)
		case lines[i].Where < 0:
			above++
		case lines[i].Where > 0:
			below++
		default:
			inView++
		}
	}
	if above+below+inView > 0 {
		notes = append(notes, fmt.Sprintf("%d more lines are not shown (%d in view, %d above, %d below): scroll, or take a snapshot "+
			"with full=true.", above+below+inView, inView, above, below))
	}
	return shown, notes, 1
}

// part is a page of all lines.
func part(lines []line, n int) (shown []int, notes []string, parts int) {
	parts = 1
	room := textLimit
	for i, l := range lines {
		if l.size > room && room < textLimit {
			parts++
			room = textLimit
		}
		room -= l.size
		if parts == n {
			shown = append(shown, i)
		}
	}
	switch {
	case n > parts:
		notes = append(notes, fmt.Sprintf("This snapshot has %d pages; there is no page %d.", parts, n))
	case n < parts:
		notes = append(notes, fmt.Sprintf("Page %d of %d: full=true and page=%d show the next.", n, parts, n+1))
	}
	return shown, notes, parts
}

// last is what the last snapshot saw, for comparison.
type last struct {
	loader cdp.LoaderID
	lines  map[string]uint64 // by key
	counts map[string]int
	shown  []shownLine
}

type shownLine struct{ key, text string }

// key is what a line is known by from one snapshot to the next: its ref, or what it says.
func (l *line) key() string {
	if id := l.id(); id != "" {
		return id
	}
	return strconv.FormatUint(l.digest(), 36)
}

// digest is of what a line says but for where the focus is.
func (l *line) digest() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Replace(l.item.line(true), " [focused]", "", 1)))
	return h.Sum64()
}

// compare marks the lines that are new or changed since the last snapshot of this document, and says what is gone.
func (l *last) compare(s *seen, lines []line) (notes []string) {
	before := *l
	*l = last{loader: s.loader, lines: map[string]uint64{}, counts: map[string]int{}}
	fresh, changed := []int{}, []int{}
	for i := range lines {
		key, digest := lines[i].key(), lines[i].digest()
		l.lines[key] = digest
		l.counts[key]++
		known, ok := before.lines[key]
		switch {
		case !ok || l.counts[key] > before.counts[key]:
			fresh = append(fresh, i)
		case known != digest:
			changed = append(changed, i)
		}
	}
	if before.loader != s.loader {
		return nil
	}
	gone := []string{}
	for _, was := range before.shown {
		if l.counts[was.key] == 0 {
			gone = append(gone, shorten(was.text, goneLength))
		}
	}
	if 2*len(fresh) > len(lines) && len(lines) > 4 {
		return []string{"Most of the page is new since the last snapshot."}
	}
	if len(fresh)+len(changed)+len(gone) == 0 {
		return []string{"Nothing changed since the last snapshot."}
	}
	for _, i := range fresh {
		lines[i].mark(" [new]")
	}
	for _, i := range changed {
		lines[i].mark(" [changed]")
	}
	note := fmt.Sprintf("Since the last snapshot: %d new, %d changed, %d gone", len(fresh), len(changed), len(gone))
	if len(gone) > 0 {
		note += ": " + strings.Join(gone[:min(len(gone), goneLimit)], "; ")
		if len(gone) > goneLimit {
			note += "; …"
		}
	}
	return []string{note + "."}
}

func (l *line) mark(with string) {
	l.text += with
	l.size += len(with)
}
