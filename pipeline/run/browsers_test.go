package run

import (
	"slices"
	"strings"
	"testing"
)

// How browsers are started decides how episodes go: a resume with other flags is another experiment.
func TestBrowserFlagsAreOfTheExperiment(t *testing.T) {
	file := Default()
	was, now := file.experiment(experimentParts{}), file.experiment(experimentParts{Browser: "sha256:1"})
	if lines := Difference(was, now); !slices.Equal(lines, []string{"browser_flags: was (nothing), now sha256:1"}) {
		t.Errorf("the difference is %q", lines)
	}
}

func TestTooFewBytes(t *testing.T) {
	for _, tt := range []struct {
		browsers int
		free     uint64
		want     string
	}{{4, 1 << 30, ""}, {8, 1 << 30, "8 browsers at once need 1720 MB of memory, and 1024 MB are there"}, {8, 0, ""}} {
		if got := TooFewBytes(tt.browsers, tt.free); (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%d browsers with %d bytes: %q, want %q", tt.browsers, tt.free, got, tt.want)
		}
	}
}
