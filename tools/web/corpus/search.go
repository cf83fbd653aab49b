package corpus

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
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
	maxTerms = 64      // of a query
	window   = 1 << 12 // documents that are scored at a time, so that a query needs little memory in a corpus of any size
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
			d, err := x.blocks.document(one.document)
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
		value, found, err := x.terms.find(one.text)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		var from, size, sum uint64
		if err := numbers(value, &one.common, &from, &size, &sum); err != nil {
			return err
		}
		total := uint64(x.info.Documents)
		if one.common < 1 || one.common > total || from > uint64(len(x.postings)) || size > uint64(len(x.postings))-from {
			return errTable
		}
		one.found = true
		one.weight = math.Log1p((float64(total-one.common) + 0.5) / (float64(one.common) + 0.5))
		one.cursor = cursor{list: x.postings[from : from+size], weight: one.weight * one.times}
		if checksum(0, one.cursor.list) != uint32(sum) {
			return fmt.Errorf("%w: that of %q", errPostings, one.text)
		}
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
	var best top
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
			slices.SortFunc(best, func(a, b scored) int { return -worse(a, b) })
			return best, nil
		}
		for _, one := range terms {
			for c := &one.cursor; !c.done && c.document < from+window; {
				length := float64(binary.LittleEndian.Uint32(x.lengths[4*c.document:]))
				times := float64(c.times)
				at := uint32(c.document - from)
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
			best.offer(scored{uint32(from) + at, scores[at]}, limit)
			scores[at] = 0
		}
		touched = touched[:0]
	}
	return nil, context.Cause(ctx)
}

// worse compares by score, and then by the order of documents.
func worse(a, b scored) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(b.document, a.document))
}

// top is a heap of the best documents, the worst of them first.
type top []scored

func (t *top) offer(one scored, limit int) {
	switch {
	case len(*t) < limit:
		heap.Push(t, one)
	case worse((*t)[0], one) < 0:
		(*t)[0] = one
		heap.Fix(t, 0)
	}
}

func (t top) Len() int           { return len(t) }
func (t top) Less(i, j int) bool { return worse(t[i], t[j]) < 0 }
func (t top) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *top) Push(one any)      { *t = append(*t, one.(scored)) }
func (t *top) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
