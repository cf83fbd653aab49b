package distributions_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"trajgen/distributions"
)

func Example() {
	d, err := distributions.Get("reasoning")
	if err != nil {
		panic(err)
	}
	r := rand.New(rand.NewPCG(1, 5)) // an episode takes Key.Rand("toolsets")
	for range 3 {
		draw := d.Sample(r)
		fmt.Printf("%v %.4f\n", draw.Toolsets, draw.LogP)
	}
	fmt.Printf("moa alone: %.3f\n", math.Exp(d.LogP([]string{"moa"})))
	// Output:
	// [web] -3.7297
	// [moa web] -1.5325
	// [moa] -0.5798
	// moa alone: 0.560
}

func TestProbabilitiesOfAllSetsSumToOne(t *testing.T) {
	for _, name := range distributions.Names() {
		d := get(t, name)
		total := 0.0
		for _, set := range subsets(d) {
			total += math.Exp(d.LogP(set))
		}
		if math.Abs(total-1) > 1e-12 {
			t.Errorf("%s: the probabilities of all sets sum to %.15f, want 1", name, total)
		}
		if got := d.LogP(nil); !math.IsInf(got, -1) {
			t.Errorf("%s: LogP of the empty set = %v, want -Inf: it is never drawn", name, got)
		}
	}
}

func TestFrequenciesFollowProbabilities(t *testing.T) {
	const n = 20_000
	for _, name := range distributions.Names() {
		d := get(t, name)
		r := rand.New(rand.NewPCG(7, 11))
		count := map[string]int{}
		for range n {
			draw := d.Sample(r)
			if !slices.IsSorted(draw.Toolsets) || len(draw.Toolsets) == 0 {
				t.Fatalf("%s: drew %q, want a sorted set that is not empty", name, draw.Toolsets)
			}
			if got := d.LogP(draw.Toolsets); got != draw.LogP || math.IsInf(got, 0) {
				t.Fatalf("%s: %q has LogP %v in the draw and %v by itself", name, draw.Toolsets, draw.LogP, got)
			}
			count[strings.Join(draw.Toolsets, ",")]++
		}
		for _, set := range subsets(d) {
			p := math.Exp(d.LogP(set))
			got := float64(count[strings.Join(set, ",")])
			// Five standard deviations, and one draw for sets so rare that the normal bound means nothing.
			if bound := 5*math.Sqrt(n*p*(1-p)) + 1; math.Abs(got-n*p) > bound {
				t.Errorf("%s: %q was drawn %v times of %d, want %.1f ± %.1f", name, set, got, n, n*p, bound)
			}
		}
	}
}

func TestReasoningFallsBackToMoA(t *testing.T) {
	d := get(t, "reasoning")
	want := map[string]float64{"moa": 0.956, "web": 0.30, "terminal": 0.20}
	for toolset, p := range want {
		got := 0.0
		for _, set := range subsets(d) {
			if slices.Contains(set, toolset) {
				got += math.Exp(d.LogP(set))
			}
		}
		if math.Abs(got-p) > 1e-12 {
			t.Errorf("reasoning has %s with probability %v, want %v", toolset, got, p)
		}
	}
}

func TestLogP(t *testing.T) {
	d := distributions.Distribution{Name: "d", Toolsets: []distributions.Share{{"a", 100}, {"b", 40}}}
	even := distributions.Distribution{Name: "even", Toolsets: []distributions.Share{{"y", 50}, {"x", 50}}}
	tests := []struct {
		name string
		d    distributions.Distribution
		set  []string
		want float64
	}{
		{"certain toolset adds nothing", d, []string{"a", "b"}, math.Log(0.4)},
		{"order does not matter", d, []string{"b", "a"}, math.Log(0.4)},
		{"repetition does not matter", d, []string{"a", "a"}, math.Log(0.6)},
		{"certain toolset missing", d, []string{"b"}, math.Inf(-1)},
		{"not in the distribution", d, []string{"a", "c"}, math.Inf(-1)},
		{"first of a tie takes the empty draw", even, []string{"y"}, math.Log(0.5)},
		{"second of a tie does not", even, []string{"x"}, math.Log(0.25)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.d.LogP(tt.set); got != tt.want && !(math.Abs(got-tt.want) < 1e-15) {
				t.Errorf("LogP(%q) = %v, want %v", tt.set, got, tt.want)
			}
		})
	}
	certain := get(t, "default")
	if draw := certain.Sample(rand.New(rand.NewPCG(3, 4))); draw.LogP != 0 || len(draw.Toolsets) != 7 {
		t.Errorf("default drew %q with LogP %v, want all seven with exactly 0", draw.Toolsets, draw.LogP)
	}
}

// TestSampleTakesOneNumberPerToolset holds the promise that draws are stable: whatever is drawn, what follows on the
// stream is the same.
func TestSampleTakesOneNumberPerToolset(t *testing.T) {
	for _, name := range distributions.Names() {
		d := get(t, name)
		sampled, plain := rand.New(rand.NewPCG(5, 6)), rand.New(rand.NewPCG(5, 6))
		for range 100 {
			d.Sample(sampled)
			for range d.Toolsets {
				plain.Float64()
			}
		}
		if got, want := sampled.Uint64(), plain.Uint64(); got != want {
			t.Errorf("%s: the stream stands elsewhere after 100 draws than after 100 × %d numbers", name, len(d.Toolsets))
		}
	}
}

func TestSampleIsAFunctionOfTheStream(t *testing.T) {
	d := get(t, "balanced")
	one, two := rand.New(rand.NewPCG(8, 9)), rand.New(rand.NewPCG(8, 9))
	for i := range 1000 {
		if a, b := d.Sample(one), d.Sample(two); !slices.Equal(a.Toolsets, b.Toolsets) || a.LogP != b.LogP {
			t.Fatalf("draw %d: the same stream gave %v and %v", i, a, b)
		}
	}
}

func get(t *testing.T, name string) distributions.Distribution {
	t.Helper()
	d, err := distributions.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// subsets lists all sets of the distribution's toolsets, each sorted.
func subsets(d distributions.Distribution) [][]string {
	var sets [][]string
	for bits := range 1 << len(d.Toolsets) {
		set := []string{}
		for i, share := range d.Toolsets {
			if bits>>i&1 == 1 {
				set = append(set, share.Toolset)
			}
		}
		slices.Sort(set)
		sets = append(sets, set)
	}
	return sets
}
