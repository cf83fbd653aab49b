package page_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
)

// compared are the roles that the accessibility tree and a snapshot have in common. Chromium has names of its own for some.
var compared = strings.Fields("alert alertdialog banner button checkbox combobox complementary contentinfo dialog form heading iframe img link " +
	"listbox main menuitem meter navigation option progressbar radio region searchbox slider spinbutton switch tab textbox treeitem video canvas")

var chromiumRoles = map[string]string{
	"image": "img", "Iframe": "iframe", "IframePresentational": "iframe", "Date": "textbox", "DateTime": "textbox", "InputTime": "textbox",
	"ColorWell": "button", "DisclosureTriangle": "button", "Canvas": "canvas", "Video": "video", "MenuListOption": "option",
}

// TestOracle compares snapshots with the accessibility tree: each item by role and name, and how often it is there. The golden file
// has the differences.
func TestOracle(t *testing.T) {
	golden(t, "oracle", compare(t, fixtures))
}

// TestOracleSaved is TestOracle with pages that were saved from the web.
func TestOracleSaved(t *testing.T) {
	pages, err := filepath.Glob(saved + "*.html")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%v, %v", pages, err)
	}
	for i, path := range pages {
		pages[i] = "saved/" + filepath.Base(path)
	}
	golden(t, "saved", compare(t, pages))
}

func compare(t *testing.T, pages []string) string {
	t.Helper()
	var differences strings.Builder
	same := 0
	for _, name := range pages {
		tb := open(t, name)
		tree, listed := tb.tree(), tb.items()
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			same += min(tree[key], listed[key])
			if n := tree[key] - listed[key]; n > 0 {
				fmt.Fprintf(&differences, "%s: only in the tree: %d %s\n", name, n, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(listed)) {
			if n := listed[key] - tree[key]; n > 0 {
				fmt.Fprintf(&differences, "%s: only in the snapshot: %d %s\n", name, n, key)
			}
		}
	}
	return fmt.Sprintf("%d items are the same\n%s", same, differences.String())
}

// tree counts the items of the accessibility tree of all frames.
func (tb *tab) tree() map[string]int {
	counts := map[string]int{}
	call(tb, accessibility.Enable, cdp.Empty{})
	frames := call(tb, cdppage.GetFrameTree, cdp.Empty{})
	for _, id := range frameIDs(frames.FrameTree) {
		nodes := call(tb, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{FrameID: id})
		for _, node := range nodes.Nodes {
			if node.Ignored || node.Role == nil {
				continue
			}
			role, name := text(node.Role), ""
			if node.Name != nil {
				name = text(node.Name)
			}
			if other, ok := chromiumRoles[role]; ok {
				role = other
			}
			if slices.Contains(compared, role) {
				counts[role+" "+strconv.Quote(strings.Join(strings.Fields(name), " "))]++
			}
		}
	}
	return counts
}

func text(v *accessibility.Value) string {
	s, err := strconv.Unquote(string(v.Value))
	if err != nil {
		return string(v.Value)
	}
	return s
}

var itemForm = regexp.MustCompile(`^ *- ([a-z]+)(?: "((?:[^"\\]|\\.)*)")?`)

// items counts the items of a full snapshot.
func (tb *tab) items() map[string]int {
	counts := map[string]int{}
	for _, line := range tb.full() {
		parts := itemForm.FindStringSubmatch(line)
		if parts == nil {
			tb.t.Fatalf("line %q is not an item", line)
		}
		if slices.Contains(compared, parts[1]) {
			counts[parts[1]+` "`+parts[2]+`"`]++
		}
	}
	return counts
}
