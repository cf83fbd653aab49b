package run_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// TestAheadKeepsTheOrderAndEndsWithTheLoop reads ahead as a run does at its end. It is here, where the race detector sees it: it does
// not see the tests of exports, whose other readers take minutes to compile with it.
func TestAheadKeepsTheOrderAndEndsWithTheLoop(t *testing.T) {
	defer goleak.VerifyNone(t)
	episodes, dir := sinktest.Episodes(100), t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ep := range episodes {
		if err := j.Append(t.Context(), ep); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := journal.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for _, source := range []export.Source{kept, sinktest.Slice(episodes)} {
		var got []*episode.Episode
		for ep, err := range export.Ahead(source).Episodes(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ep)
		}
		if diff := cmp.Diff(episodes, got); diff != "" {
			t.Errorf("episodes (-want +got):\n%s", diff)
		}
		for range export.Ahead(source).Episodes(t.Context()) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		for _, err := range export.Ahead(source).Episodes(ctx) {
			if n++; n == 3 {
				cancel()
			}
			if err != nil && n <= 3 {
				t.Fatal(err)
			}
		}
		if n > 60 {
			t.Errorf("%d episodes after the context had ended", n)
		}
		cancel()
	}
}
