package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"trajgen/tools/browser/page"
)

var fixtures = []string{"forms.html", "shadow.html", "frames.html", "covered.html", "odd.html"}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

func TestSnapshot(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			tb := open(t, name)
			s, err := tb.Snapshot(tb.ctx, page.SnapshotOptions{})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, fmt.Sprintf("%s, %d elements\n%s\n", s.Title, s.Elements, s.Text))
			again := open(t, name).show(page.SnapshotOptions{})
			if again != s.Text {
				t.Errorf("a second tab shows\n%s\nthe first one\n%s", again, s.Text)
			}
		})
	}
}
