package world_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"trajgen/tools/web/corpus/world"
)

func Example() {
	for d, err := range world.Documents() {
		if err != nil {
			panic(err)
		}
		if d.ID == "torvils-comet" {
			fmt.Println(d.Title)
			fmt.Print(d.Text)
		}
	}
	// Output:
	// Torvil's Comet
	// **Torvil's Comet**: see [Ansa Torvil](https://world.example/wiki/ansa-torvil-astronomer), under which it is treated.
}

var documents = sync.OnceValues(func() (map[string]world.Document, error) {
	found := map[string]world.Document{}
	for d, err := range world.Documents() {
		if err != nil {
			return nil, err
		}
		if found[d.ID].ID != "" {
			return nil, fmt.Errorf("the id %s is there twice", d.ID)
		}
		found[d.ID] = d
	}
	return found, nil
})

// pages are the pages by id.
func pages(t *testing.T) map[string]world.Document {
	t.Helper()
	found, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const address = "https://world.example/wiki/"

func TestPages(t *testing.T) {
	all := pages(t)
	if len(all) < 300 || len(all) > 420 {
		t.Errorf("%d pages, want 300 to 420", len(all))
	}
	link := regexp.MustCompile(`\]\(([^)]*)\)`)
	linked, bytes, short, titles := map[string]int{}, 0, 0, map[string]bool{}
	for id, d := range all {
		bytes += len(d.Text)
		if titles[d.Title] {
			t.Errorf("the title %s is there twice", d.Title)
		}
		titles[d.Title] = true
		if d.URL != address+id || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(id) {
			t.Errorf("page %s has the URL %s", id, d.URL)
		}
		for _, match := range link.FindAllStringSubmatch(d.Text, -1) {
			target := strings.TrimPrefix(match[1], address)
			if all[target].ID == "" || target == id {
				t.Errorf("%s links to %s, which is not another page", id, match[1])
			}
			linked[target]++
		}
		if len(strings.Fields(d.Text)) < 80 {
			short++
		}
	}
	if bytes < 500_000 || bytes > 800_000 {
		t.Errorf("%d bytes of text, want 500,000 to 800,000", bytes)
	}
	if short > 40 { // pages that only lead to others
		t.Errorf("%d pages have fewer than 80 words", short)
	}
	for id, d := range all {
		if linked[id] == 0 && strings.Contains(d.Text, "## See also") {
			t.Errorf("no page links to %s", id)
		}
	}
}

// TestHardPages holds that the corpus has what makes research hard: pages that contradict each other, and pages that are nearly
// alike.
func TestHardPages(t *testing.T) {
	all := pages(t)
	var old, disputed, shared, stubs []string
	for id, d := range all {
		switch {
		case strings.HasSuffix(id, "-edition-of-655"):
			old = append(old, id)
			current := all[strings.TrimSuffix(id, "-edition-of-655")]
			lines, same := strings.Split(current.Text, "\n"), 0
			for _, line := range lines {
				if strings.Contains(d.Text, line) {
					same++
				}
			}
			if current.ID == "" || same == len(lines) || same*2 < len(lines) {
				t.Errorf("%s has %d of %d lines of the current article, want most and not all", id, same, len(lines))
			}
		case strings.Contains(d.Text, "## What the sources say"):
			disputed = append(disputed, id)
			where := regexp.MustCompile(`is discussed under \[?([^\].]+)`).FindStringSubmatch(d.Text)
			if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(other world.Document) bool {
				return where != nil && other.Title == where[1] && strings.Contains(other.Text, "scholars follow") &&
					strings.Contains(other.Text, d.Title)
			}) {
				t.Errorf("%s: no page says which of its sources is followed", id)
			}
		case strings.Contains(d.Text, "may mean one of several things"):
			shared = append(shared, id)
		case strings.Contains(d.Text, "under which it is treated"):
			stubs = append(stubs, id)
		}
	}
	if len(old) < 6 || len(disputed) < 8 || len(shared) < 10 || len(stubs) < 10 {
		t.Errorf("%d old articles, %d disputes, %d shared names, %d other names; want at least 6, 8, 10 and 10",
			len(old), len(disputed), len(shared), len(stubs))
	}
}

// TestScript holds that what is committed is what the script makes, and that the script finds the answers of the questions.
func TestScript(t *testing.T) {
	check := exec.CommandContext(t.Context(), "python3", "-B", "../../../../scripts/world", "--check")
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("scripts/world --check: %v\n%s", err, out)
	}
}

func TestJSONL(t *testing.T) {
	want, err := os.ReadFile("world.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(world.JSONL())
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("what is embedded is not world.jsonl: %d and %d bytes, %v", len(got), len(want), err)
	}
}

func BenchmarkDocuments(b *testing.B) {
	for b.Loop() {
		for range world.Documents() {
		}
	}
}
