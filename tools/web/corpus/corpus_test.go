package corpus_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/source"
)

// from yields documents without an error.
func from(documents ...corpus.Document) iter.Seq2[corpus.Document, error] {
	return func(yield func(corpus.Document, error) bool) {
		for _, d := range documents {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// build makes an index and opens it.
func build(t testing.TB, options corpus.Options, documents ...corpus.Document) *corpus.Index {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.corpus")
	if _, err := corpus.Build(t.Context(), path, from(documents...), options); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

func open(t testing.TB, path string) *corpus.Index {
	t.Helper()
	index, err := corpus.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	return index
}

// zipf makes documents with words as frequent as in a language, each about a topic of its own.
func zipf(n, words int, seed uint64) []corpus.Document {
	r := rand.New(rand.NewPCG(seed, 1))
	law := rand.NewZipf(r, 1.05, 1, uint64(words-1))
	documents := make([]corpus.Document, n)
	for i := range documents {
		topic := r.Uint64N(500)*7919 + 1
		text := make([]string, 1+int(math.Exp(math.Log(200)+0.9*r.NormFloat64())))
		for at := range text {
			rank := law.Uint64()
			if r.IntN(3) == 0 {
				rank = (rank*topic + topic) % uint64(words)
			}
			text[at] = word(rank)
		}
		documents[i] = corpus.Document{ID: fmt.Sprintf("d%d", i), Title: word(topic), URL: fmt.Sprintf("https://x.test/%d", i), Text: strings.Join(text, " ")}
	}
	return documents
}

// word is the word of a rank, frequent ones being shorter.
func word(rank uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b []byte
	for rank++; rank > 0; rank /= uint64(len(consonants) * len(vowels)) {
		b = append(b, consonants[rank%uint64(len(consonants))], vowels[rank/uint64(len(consonants))%uint64(len(vowels))])
	}
	return string(b)
}

// formula ranks as BM25's formula says, over all documents.
type formula struct {
	documents []corpus.Document
	count     []map[string]float64 // of the words of each
	length    []float64
	average   float64
	with      map[string]float64 // documents with a word
}

func newFormula(documents []corpus.Document) *formula {
	f := &formula{documents: documents, with: map[string]float64{}}
	for i, d := range documents {
		f.count = append(f.count, map[string]float64{})
		words := strings.Fields(strings.ToLower(d.Title + " " + d.Text))
		for _, word := range words {
			f.count[i][word]++
		}
		f.length = append(f.length, float64(len(words)))
		f.average += float64(len(words)) / float64(len(documents))
		for word := range f.count[i] {
			f.with[word]++
		}
	}
	return f
}

func (f *formula) rank(query string, limit int) []string {
	scores := make([]float64, len(f.documents))
	order := make([]int, len(f.documents))
	all := float64(len(f.documents))
	for i := range f.documents {
		order[i] = i
		for _, word := range strings.Fields(query) {
			if tf := f.count[i][word]; tf > 0 {
				idf := math.Log(1 + (all-f.with[word]+0.5)/(f.with[word]+0.5))
				scores[i] += idf * tf / (tf + 0.9*(1-0.4+0.4*f.length[i]/f.average))
			}
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return scores[order[a]] > scores[order[b]]+1e-12 })
	var best []string
	for _, i := range order {
		if scores[i] > 0 && len(best) < limit {
			best = append(best, fmt.Sprintf("%s %.9f", f.documents[i].ID, scores[i]))
		}
	}
	return best
}

func ranked(hits []corpus.Hit) []string {
	var all []string
	for _, hit := range hits {
		all = append(all, fmt.Sprintf("%s %.9f", hit.ID, hit.Score))
	}
	return all
}

// TestSearchIsBM25 compares with the formula over all documents, in an index that was sorted in many parts.
func TestSearchIsBM25(t *testing.T) {
	documents := zipf(900, 3000, 1)
	documents = append(documents, documents[:60]...) // equal scores, in the order of documents
	for i := range documents {
		documents[i].ID = fmt.Sprintf("d%d", i)
	}
	index, want := build(t, corpus.Options{Memory: 200_000}, documents...), newFormula(documents)
	r := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		words := strings.Fields(documents[r.IntN(len(documents))].Text)
		at := r.IntN(len(words))
		query := strings.Join(words[at:min(len(words), at+1+r.IntN(10))], " ") + " unheardof"
		limit := 1 + r.IntN(40)
		hits, err := index.Search(t.Context(), query, limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.rank(query, limit), ranked(hits)); diff != "" {
			t.Fatalf("%q (-formula +index):\n%s", query, diff)
		}
		for _, hit := range hits {
			if n := utf8.RuneCountInString(hit.Snippet); n > 300 || n == 0 {
				t.Errorf("a passage of %d characters", n)
			}
		}
	}
}

// TestSameBytes holds that neither the memory of a build nor its time shows in the index, and that the order of documents does not
// show in the digest.
func TestSameBytes(t *testing.T) {
	documents := zipf(300, 2000, 3)
	dir := t.TempDir()
	var files [][]byte
	var digests []string
	for i, memory := range []int{0, 10_000, 100_000} {
		path := filepath.Join(dir, fmt.Sprint(i))
		info, err := corpus.Build(t.Context(), path, from(documents...), corpus.Options{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if files = append(files, file); info.Bytes != int64(len(file)) || info.Documents != 300 || info != open(t, path).Info() {
			t.Errorf("info %+v of %d bytes", info, len(file))
		}
		if string(file) != string(files[0]) {
			t.Errorf("with %d bytes of memory the index is another", memory)
		}
		digests = append(digests, info.Digest)
	}
	slices.Reverse(documents)
	if got := build(t, corpus.Options{}, documents...).Digest(); got != digests[0] {
		t.Errorf("digest %s of another order, want %s", got, digests[0])
	}
	documents[5].Text += "."
	if got := build(t, corpus.Options{}, documents...).Digest(); got == digests[0] {
		t.Error("the digest does not depend on a text")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("builds left %v, %v", left, err)
	}
}

func TestTerms(t *testing.T) {
	tests := []struct{ analyser, give, want string }{
		{corpus.Plain, "The cat's 2nd e-mail: don't!", "the cat s 2nd e mail don t"},
		{corpus.Plain, "ＦＵＬＬ ｗｉｄｔｈ １２ ﬁne", "full width 12 fine"},
		{corpus.Plain, "Cafe\u0301 CAFÉ ΣΊΣΥΦΟΣ Straße", "café café σίσυφοσ straße"},
		{corpus.Plain, "ACME™ 5㎏ x² ½", "acmetm 5kg x2 1 2"},
		{corpus.Plain, "東京タワーへ行く", "東 京 タワー へ 行 く"},
		{corpus.Plain, "हिन्दी 한국어 ไทย", "हिन्दी 한국어 ไทย"},
		{corpus.Plain, "a\xff\xfeb \x00 …—“q”", "a b q"},
		{corpus.Plain, "", ""},
		{corpus.Plain, strings.Repeat("x", 600), strings.Repeat("x", 256) + " " + strings.Repeat("x", 256) + " " + strings.Repeat("x", 88)},
		{corpus.English, "The cat's whiskers are not in the running shoes, don't", "cat whisker run shoe don"},
		{corpus.English, "Übungen café 1990s", "übungen café 1990"},
		// Of Porter's paper.
		{corpus.English, "caresses ponies ties caress cats feed agreed plastered bled motoring sing", "caress poni ti caress cat feed agre plaster bled motor sing"},
		{corpus.English, "conflated troubled sized hopping tanned falling hissing fizzed failing filing", "conflat troubl size hop tan fall hiss fizz fail file"},
		{corpus.English, "happy sky relational conditional rational valenci hesitanci digitizer", "happi sky relat condit ration valenc hesit digit"},
		{corpus.English, "conformabli radicalli differentli vileli analogousli vietnamization predication operator", "conform radic differ vile analog vietnam predic oper"},
		{corpus.English, "feudalism decisiveness hopefulness callousness formaliti sensitiviti sensibiliti", "feudal decis hope callous formal sensit sensibl"},
		{corpus.English, "triplicate formative formalize electriciti electrical hopeful goodness", "triplic form formal electr electr hope good"},
		{corpus.English, "revival allowance inference airliner gyroscopic adjustable defensible irritant replacement", "reviv allow infer airlin gyroscop adjust defens irrit replac"},
		{corpus.English, "adjustment dependent adoption homologou communism activate angulariti homologous effective bowdlerize", "adjust depend adopt homolog commun activ angular homolog effect bowdler"},
		{corpus.English, "probate rate cease controll roll", "probat rate ceas control roll"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(strings.Fields(tt.want), corpus.Terms(tt.analyser, tt.give), cmp.Transformer("empty", func(s []string) string { return strings.Join(s, " ") })); diff != "" {
			t.Errorf("%s of %q (-want +got):\n%s", tt.analyser, tt.give, diff)
		}
	}
}

func TestDocument(t *testing.T) {
	a := corpus.Document{ID: "a", Title: "A", URL: "https://x.test/a", Text: "first"}
	same := corpus.Document{ID: "b", URL: "https://x.test/a", Text: "the same page again"}
	address := corpus.Document{ID: "https://x.test/c", Text: "an id like a URL"}
	index := build(t, corpus.Options{}, a, same, address, corpus.Document{ID: "empty"})
	for give, want := range map[string]corpus.Document{
		"a": a, "b": same, "https://x.test/a": a, "https://x.test/a#part": a, "https://x.test/c": address, "empty": {ID: "empty"},
	} {
		if got, err := index.Document(t.Context(), give); err != nil || got != want {
			t.Errorf("Document(%q) = %+v, %v, want %+v", give, got, err, want)
		}
	}
	for _, give := range []string{"", "A", "https://x.test/", "zzz", strings.Repeat("ü", 5000)} {
		_, err := index.Document(t.Context(), give)
		ours, ok := errors.AsType[*source.Error](err)
		if !ok || ours.Class != source.NotInCorpus || ours.Blame != source.Agent || !strings.Contains(ours.Message, "Search first") || len(ours.Message) > 500 {
			t.Errorf("Document(%.20q): %v", give, err)
		}
	}
	if index.Len() != 4 || !strings.HasPrefix(index.Digest(), "sha256:") {
		t.Errorf("%d documents, %s", index.Len(), index.Digest())
	}
}

func TestSearchOfOddQueries(t *testing.T) {
	var documents []corpus.Document
	for i := range 200 { // word i is in the documents from i on
		var text []string
		for w := range i + 1 {
			text = append(text, fmt.Sprintf("w%d", w))
		}
		documents = append(documents, corpus.Document{ID: fmt.Sprint(i), Text: strings.Join(text, " ")})
	}
	index := build(t, corpus.Options{}, documents...)
	var long []string
	for w := range 200 {
		long = append(long, fmt.Sprintf("w%d", w))
	}
	cut, err := index.Search(t.Context(), strings.Join(long, " "), 500)
	if err != nil || len(cut) != 64 || cut[0].ID != "199" { // the 64 rarest are those from w136 on
		t.Errorf("%d hits of a long query, %v", len(cut), err)
	}
	rare, err := index.Search(t.Context(), strings.Join(long[136:], " "), 500)
	if diff := cmp.Diff(ranked(rare), ranked(cut)); err != nil || diff != "" {
		t.Errorf("the 64 rarest words find others than all 200: %v\n%s", err, diff)
	}
	for _, query := range []string{"", " ", "???", "unheard", "\xff", strings.Repeat("unheard ", 100_000)} {
		if hits, err := index.Search(t.Context(), query, 5); err != nil || len(hits) != 0 {
			t.Errorf("%.20q: %d hits, %v", query, len(hits), err)
		}
	}
	if hits, err := index.Search(t.Context(), "w0", 1<<40); err != nil || len(hits) != 200 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
	once, err1 := index.Search(t.Context(), "w9", 1)
	twice, err2 := index.Search(t.Context(), "w9 w9", 1)
	if err1 != nil || err2 != nil || math.Abs(twice[0].Score-2*once[0].Score) > 1e-9 {
		t.Errorf("a word that is there twice counts %v, once %v", twice, once)
	}
	for _, limit := range []int{0, -1} {
		if _, err := index.Search(t.Context(), "w1", limit); err == nil {
			t.Errorf("a limit of %d is accepted", limit)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := index.Search(ctx, "w1", 1); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSnippet(t *testing.T) {
	filler := strings.Repeat("Nothing to see in these words. ", 40)
	tests := []struct{ name, text, query, want string }{
		{"the beginning where no word is found", "One two.\n\nThree", "title", "One two. Three"},
		{"the sentence with the most words", filler + "The harbour was built early. The old lighthouse of Marrow burned in 1742. " + filler, "lighthouse Marrow 1742",
			"…The old lighthouse of Marrow burned in 1742. Nothing"},
		{"a word alone against many together", "marrow " + filler + "A lighthouse at marrow. " + filler, "marrow lighthouse", "…A lighthouse at marrow. Nothing"},
		{"without spaces", strings.Repeat("x", 1000) + "。灯台" + strings.Repeat("あ", 500), "灯台", "…灯台ああ"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			hits, err := build(t, corpus.Options{}, corpus.Document{ID: "d", Title: "title", Text: tt.text}).Search(t.Context(), tt.query, 1)
			if err != nil || len(hits) != 1 {
				t.Fatalf("%d hits, %v", len(hits), err)
			}
			got := hits[0].Snippet
			if !strings.HasPrefix(got, tt.want) || utf8.RuneCountInString(got) > 300 || !utf8.ValidString(got) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if long := utf8.RuneCountInString(tt.text) > 300; long != strings.HasSuffix(got, "…") {
				t.Errorf("%q does not show that it is cut", got)
			}
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	ok := corpus.Document{ID: "a", Text: "x", Place: "one.jsonl:1"}
	tests := []struct {
		name string
		give []corpus.Document
		want string
	}{
		{"nothing", nil, "there are no documents"},
		{"an id twice", []corpus.Document{ok, {ID: "b"}, {ID: "a", Place: "two.jsonl:7"}}, `two.jsonl:7: the id "a" is that of the document at one.jsonl:1, too`},
		{"no id", []corpus.Document{ok, {Text: "y"}}, "document 2: the document has no id"},
		{"no UTF-8", []corpus.Document{{ID: "a", Text: "\xff", Place: "p"}}, "p: the text is not UTF-8"},
		{"too large", []corpus.Document{{ID: "a", Text: strings.Repeat("x", corpus.MaxDocument), Place: "p"}}, "larger than 16 MiB"},
		{"a long id", []corpus.Document{{ID: strings.Repeat("x", 5000)}}, "longer than 4096 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, memory := range []int{0, 1} { // together in memory, and each document in a run of its own
				path := filepath.Join(t.TempDir(), "x.corpus")
				_, err := corpus.Build(t.Context(), path, from(tt.give...), corpus.Options{Memory: memory})
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
					t.Errorf("left %v", left)
				}
			}
		})
	}
	if _, err := corpus.Build(t.Context(), filepath.Join(t.TempDir(), "x"), from(ok), corpus.Options{Analyser: "french"}); err == nil || !strings.Contains(err.Error(), "plain, english") {
		t.Errorf("an unknown analyser: %v", err)
	}
	dir := t.TempDir()
	if _, err := corpus.Build(t.Context(), dir, from(ok), corpus.Options{}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("into a directory: %v", err)
	}
	broken := errors.New("no more")
	_, err := corpus.Build(t.Context(), filepath.Join(dir, "x"), func(yield func(corpus.Document, error) bool) {
		_ = yield(ok, nil) && yield(corpus.Document{}, broken)
	}, corpus.Options{})
	if !errors.Is(err, broken) {
		t.Errorf("an error of the documents: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = corpus.Build(ctx, filepath.Join(dir, "x"), from(zipf(10, 10, 1)...), corpus.Options{Progress: func(n int) {
		if n == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestOneBuilder holds that a second process is refused while one builds, and that the index in place stands meanwhile.
func TestOneBuilder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.corpus")
	one := corpus.Document{ID: "a", Text: "x"}
	if _, err := corpus.Build(t.Context(), path, from(one), corpus.Options{}); err != nil {
		t.Fatal(err)
	}
	_, err := corpus.Build(t.Context(), path, from(one, corpus.Document{ID: "b"}), corpus.Options{Progress: func(int) {
		if _, err := corpus.Build(t.Context(), path, from(one), corpus.Options{}); err == nil || !strings.Contains(err.Error(), "locked by another process") {
			t.Errorf("a second build: %v", err)
		}
		if n := open(t, path).Len(); n != 1 {
			t.Errorf("%d documents in the old index", n)
		}
	}})
	if n := open(t, path).Len(); err != nil || n != 2 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// TestManyAtOnce holds that searches and reads do not disturb each other, and that Close waits for them.
func TestManyAtOnce(t *testing.T) {
	documents := zipf(400, 2000, 5)
	index := build(t, corpus.Options{}, documents...)
	ask := func(n int) string {
		hits, err := index.Search(t.Context(), documents[n].Text[:40], 5)
		if err != nil {
			return err.Error()
		}
		d, err := index.Document(t.Context(), documents[n].URL)
		if err != nil || d.ID != documents[n].ID {
			return fmt.Sprint(d.ID, err)
		}
		return strings.Join(ranked(hits), ",")
	}
	want := make([]string, 64)
	for n := range want {
		want[n] = ask(n)
	}
	var all sync.WaitGroup
	for n := range want {
		all.Go(func() {
			for range 5 {
				if got := ask(n); got != want[n] {
					t.Errorf("%s, alone %s", got, want[n])
				}
			}
		})
	}
	all.Wait()
	for n := range want {
		all.Go(func() {
			if got := ask(n); got != want[n] && got != "the corpus is closed" {
				t.Errorf("while it is closed: %s", got)
			}
		})
	}
	if err := index.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if got := ask(0); got != "the corpus is closed" {
		t.Errorf("closed: %s", got)
	}
}

func TestLinks(t *testing.T) {
	text := `See [the harbour](harbour.md), [Marrow](/places/marrow "a town"), [x](https://y.test/a?b=1#c), ![chart](chart.png), [here](#top), [odd](<a b>), [p](q_(r)), [not] (x), [n](a b).`
	got := corpus.Links(corpus.Document{ID: "d", URL: "https://x.test/places/index.md", Text: text})
	want := []source.Link{
		{URL: "https://x.test/places/harbour.md", Text: "the harbour"}, {URL: "https://x.test/places/marrow", Text: "Marrow"},
		{URL: "https://y.test/a?b=1#c", Text: "x"}, {URL: "https://x.test/places/index.md#top", Text: "here"},
		{URL: "https://x.test/places/a%20b", Text: "odd"}, {URL: "https://x.test/places/q_(r)", Text: "p"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = corpus.Links(corpus.Document{ID: "places/index.md", Text: "[a](harbour.md) [b](../people/ann.md#born) [c](https://y.test/)"})
	want = []source.Link{{URL: "places/harbour.md", Text: "a"}, {URL: "people/ann.md", Text: "b"}, {URL: "https://y.test/", Text: "c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in a folder (-want +got):\n%s", diff)
	}
}
