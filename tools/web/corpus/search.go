package corpus

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"trajgen/tools/web/source"
)

// The parameters of BM25, with Lucene's formula: Pyserini's defaults.
const (
	k1 = 0.9
	kb = 0.4
)

const (
	maxTerms = 64 // of a query
	// window is how many documents are scored at a time, so that a query needs little memory in a corpus of any size.
	window = 1 << 12
)

// term is a word of a query.
type term struct {
	text   string
	times  float64 // in the query
	weight float64 // by how rare it is
	found  bool    // in the corpus
	cursor cursor
	common uint64 // documents with it
}

// Search implements Corpus. Documents with equal scores come in the order in which they were added.
func (x *Index) Search(ctx context.Context, query string, limit int) (hits []Hit, err error) {
	if limit < 1 {
		return nil, source.Errorf(source.Agent, source.Malformed, "limit is %d; want from 1 to %d", limit, MaxHits)
	}
	err = x.use(ctx, func() error {
		a, err := newAnalyser(x.info.Analyser)
		if err != nil {
			return err
		}
		terms := termsOf(a, query)
		if err := x.lookUp(terms); err != nil {
			return err
		}
		best, err := x.rank(ctx, rarest(terms), min(limit, MaxHits))
		if err != nil {
			return err
		}
		for _, one := range best {
			d, err := x.document(one.document)
			if err != nil {
				return err
			}
			hits = append(hits, Hit{Document: d, Score: one.score, Snippet: passage(a, d.Text, terms)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// termsOf are the different terms of a query, in their order.
func termsOf(a *analyser, query string) []*term {
	var terms []*term
	known := map[string]*term{}
	a.each(query, func(text []byte, _, _ int) {
		if one := known[string(text)]; one != nil {
			one.times++
			return
		}
		one := &term{text: string(text), times: 1, weight: 1}
		known[one.text] = one
		terms = append(terms, one)
	})
	return terms
}

// lookUp finds the list of each term.
func (x *Index) lookUp(terms []*term) error {
	for _, one := range terms {
		value, found, err := x.table.find(termKey + one.text)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		list, err := takeNumbers(value, &one.common)
		total := uint64(x.info.Documents)
		if err != nil || one.common < 1 || one.common > total {
			return errDamaged
		}
		one.found = true
		one.weight = math.Log1p((float64(total-one.common) + 0.5) / (float64(one.common) + 0.5))
		one.cursor = cursor{list: list, weight: one.weight * one.times}
	}
	return nil
}

// rarest are the terms that the corpus has, without the most frequent ones of a long query.
func rarest(terms []*term) []*term {
	terms = slices.DeleteFunc(slices.Clone(terms), func(one *term) bool { return !one.found })
	if len(terms) <= maxTerms {
		return terms
	}
	byCount := slices.Clone(terms)
	slices.SortStableFunc(byCount, func(a, b *term) int { return cmp.Compare(a.common, b.common) })
	kept := byCount[:maxTerms]
	return slices.DeleteFunc(terms, func(one *term) bool { return !slices.Contains(kept, one) })
}

// scored is a document with its score.
type scored struct {
	document uint32
	score    float64
}

// rank scores the documents window by window, and keeps the best.
func (x *Index) rank(ctx context.Context, terms []*term, limit int) ([]scored, error) {
	var best []scored
	scores := make([]float64, window)
	var touched []uint32
	total := uint64(x.info.Documents)
	average := max(1, float64(x.info.Words)/float64(total))
	for _, one := range terms {
		if err := one.cursor.next(total); err != nil {
			return nil, err
		}
	}
	for ctx.Err() == nil {
		from := total
		for _, one := range terms {
			if !one.cursor.done {
				from = min(from, one.cursor.document)
			}
		}
		if from == total {
			return best, nil
		}
		from -= from % window
		lengths, found, err := x.table.find(numbered(lengthsKey, uint32(from)))
		if err != nil || !found || uint64(len(lengths)) != 4*min(total-from, window) {
			return nil, errDamaged
		}
		for _, one := range terms {
			for c := &one.cursor; !c.done && c.document < from+window; {
				at := uint32(c.document - from)
				length := float64(binary.LittleEndian.Uint32(lengths[4*at:]))
				times := float64(c.times)
				if scores[at] == 0 {
					touched = append(touched, at)
				}
				scores[at] += c.weight * times / (times + k1*(1-kb+kb*length/average))
				if err := c.next(total); err != nil {
					return nil, err
				}
			}
		}
		for _, at := range touched {
			best = offer(best, scored{uint32(from) + at, scores[at]}, limit)
			scores[at] = 0
		}
		touched = touched[:0]
	}
	return nil, context.Cause(ctx)
}

// better compares by score, and then by the order of documents.
func better(a, b scored) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.document, b.document))
}

// offer keeps a document if it is one of the best so far, which are in order.
func offer(best []scored, one scored, limit int) []scored {
	if len(best) == limit && better(best[limit-1], one) < 0 {
		return best
	}
	at, _ := slices.BinarySearchFunc(best, one, better)
	best = slices.Insert(best, at, one)
	return best[:min(len(best), limit)]
}
