package corpus

import "testing"

// Terms are those that an analyser makes.
func Terms(name, text string) []string {
	a, err := newAnalyser(name)
	if err != nil {
		panic(err)
	}
	terms := []string{}
	a.each(text, func(term []byte, _, _ int) { terms = append(terms, string(term)) })
	return terms
}

// WithoutChecksums makes all checksums equal, until the test ends, so that a fuzz test reaches what lies behind them.
func WithoutChecksums(t testing.TB) {
	before := checksum
	t.Cleanup(func() { checksum = before })
	checksum = func([]byte) uint32 { return 0 }
}
