package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run/progress"
	"trajgen/tools/web/corpus"
	"trajgen/tools/web/extract"
	"trajgen/tools/web/source"
)

func newCorpus(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use: "corpus", Short: "Make documents searchable, look into them and serve them",
		Long: `Makes an index of documents, in which episodes search and read in place of the live web. The index is one file that holds
the documents, too: the same documents give the same file, and its digest is part of an experiment.`,
	}
	return group(cmd, newCorpusBuild(std), newCorpusSearch(std), newCorpusShow(std), newCorpusInfo(std), newCorpusServe(std))
}

// corpusBuild are the flags of corpus build.
type corpusBuild struct {
	out     string
	options corpus.Options
	source  corpus.Source
	skipBad bool
	json    bool
}

func newCorpusBuild(std stdio) *cobra.Command {
	var o corpusBuild
	cmd := &cobra.Command{
		Use:   "build PATH... --out FILE",
		Short: "Make an index of documents",
		Long: `Reads documents from files and from the files below folders:

  text (.txt) and Markdown (.md, .markdown)   one document each; the id is the path below the folder
  pages (.html, .htm, .xhtml)                 likewise, their main content as Markdown
  WARC (.warc, .warc.gz, .wet.gz)             responses with status 200, resources and conversions that are HTML or text
  JSON Lines, Parquet, Arrow and others       a document in each row, as trajgen reads datasets; packed ones, too

A row has the fields id, title, url and text; --map says which columns have them under other names. In place of a text it may
have contents, which begin with the title and a line break unless there is a title apart. A row without an id has its URL.

A document that cannot be read ends the build, and so do two with the same id; --skip-bad leaves the former out and says so.
The index appears when all of it is there. How much memory this takes does not depend on how many documents there are.`,
		Example: `  trajgen corpus build pages/ --out pages.corpus
  trajgen corpus build wiki-*.parquet --map id=docid,text=body --analyser english --out wiki.corpus`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			work := func(ctx context.Context) error { return o.build(ctx, std, paths) }
			return ending(cmd.Context(), "interrupted; nothing was written", work)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "file to write")
	flags.StringVar(&o.options.Analyser, "analyser", corpus.Plain,
		"what terms are: plain (NFKC, lower case, letters and digits) or english (the same without stop words, and stemmed)")
	flags.StringToStringVar(&o.source.Map, "map", nil,
		"column of rows that has a field under another name, such as text=body; may be given several times")
	flags.BoolVar(&o.skipBad, "skip-bad", false, "leave out documents that cannot be read, and say which")
	flags.BoolVar(&o.json, "json", false, "print what the index has as JSON")
	return cmd
}

func (o *corpusBuild) build(ctx context.Context, std stdio, paths []string) error {
	var wrong error
	if o.out == "" {
		wrong = errors.New("corpus build needs --out FILE")
	}
	if err := errors.Join(wrong, o.source.Validate(), o.options.Validate()); err != nil {
		return usage(err)
	}
	left, others, other, first := 0, 0, "", []error{}
	if o.skipBad {
		o.source.Bad = func(err error) {
			if left++; left <= 10 {
				first = append(first, err)
			}
		}
	}
	o.source.Other = func(place string) { others, other = others+1, cmp.Or(other, place) }
	if width, ok := terminal(std.err); ok {
		one, clear := progress.Count(std.err, -1, width, "doc")
		o.options.Progress = func(int) { one() }
		defer clear()
	}
	pages := extract.New(extract.Config{})
	o.source.HTML = func(ctx context.Context, body []byte, contentType, url string) (title, text string, err error) {
		page := pages.Page(ctx, source.Page{URL: url}, body, contentType)
		if page.Error != nil {
			return "", "", page.Error
		}
		return page.Title, page.Text, nil
	}
	info, err := corpus.Build(ctx, o.out, mistakes(o.source.Read(ctx, paths...)), o.options)
	if _, ok := errors.AsType[*corpus.InputError](err); ok {
		err = usage(err)
	}
	if err != nil {
		return err
	}
	for _, bad := range first {
		fmt.Fprintf(std.err, "left out: %v\n", bad)
	}
	if left > 0 {
		fmt.Fprintf(std.err, "left out %d documents that cannot be read\n", left)
	}
	if others > 0 {
		fmt.Fprintf(std.err, "left out %d that are not documents, such as %s\n", others, other)
	}
	if o.json {
		return writeJSON(std.out, info)
	}
	fmt.Fprintf(std.out, "%s: %d documents, %d words, %.1f MB, %s\n",
		o.out, info.Documents, info.Words, float64(info.Bytes)/1e6, info.Digest)
	return nil
}

// mistakes marks the errors of reading documents as the user's.
func mistakes(documents iter.Seq2[corpus.Document, error]) iter.Seq2[corpus.Document, error] {
	return func(yield func(corpus.Document, error) bool) {
		for document, err := range documents {
			if err != nil {
				err = usage(err)
			}
			if !yield(document, err) {
				return
			}
		}
	}
}

// withCorpus makes a function that opens the index which the first argument names.
func withCorpus[T any](do func(cmd *cobra.Command, index *corpus.Index, args []string) (T, error),
) func(*cobra.Command, []string) (T, error) {
	return func(cmd *cobra.Command, args []string) (found T, err error) {
		index, err := corpus.Open(args[0])
		if err != nil {
			return found, usage(err)
		}
		defer func() { err = errors.Join(err, index.Close()) }()
		return do(cmd, index, args[1:])
	}
}

// foundDocument is a line of corpus search --json.
type foundDocument struct {
	ID      string  `json:"id"`
	Title   string  `json:"title"`
	URL     string  `json:"url,omitempty"`
	Score   float64 `json:"score"`
	Snippet string  `json:"snippet"`
}

func newCorpusSearch(std stdio) *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "search FILE QUERY", Short: "Search an index as an episode would", Args: cobra.ExactArgs(2)}
	cmd.Flags().IntVar(&limit, "limit", 10, "most documents to print")
	find := func(cmd *cobra.Command, index *corpus.Index, args []string) ([]foundDocument, error) {
		if limit < 1 || limit > corpus.MaxHits {
			return nil, usage(fmt.Errorf("--limit is %d; want from 1 to %d", limit, corpus.MaxHits))
		}
		hits, err := index.Search(cmd.Context(), args[0], limit)
		found := make([]foundDocument, len(hits))
		for i, hit := range hits {
			found[i] = foundDocument{ID: hit.ID, Title: hit.Title, URL: hit.URL, Score: hit.Score, Snippet: hit.Snippet}
		}
		return found, err
	}
	return showing(std, cmd, withCorpus(find), func(w io.Writer, found []foundDocument) error {
		for i, one := range found {
			fmt.Fprintf(w, "%d. %s\n   %s\n   %.2f  %s\n", i+1, one.Title, cmp.Or(one.URL, one.ID), one.Score, one.Snippet)
		}
		if len(found) == 0 {
			fmt.Fprintln(std.err, "no document has any of these words")
		}
		return nil
	})
}

func newCorpusShow(std stdio) *cobra.Command {
	find := func(cmd *cobra.Command, index *corpus.Index, args []string) (corpus.Document, error) {
		return index.Document(cmd.Context(), args[0])
	}
	return showing(std, &cobra.Command{
		Use: "show FILE ID", Short: "Print a document, by id or URL", Args: cobra.ExactArgs(2),
	}, withCorpus(find), func(w io.Writer, d corpus.Document) error {
		_, err := fmt.Fprintf(w, "id: %s\ntitle: %s\nurl: %s\n\n%s\n", d.ID, d.Title, d.URL, strings.TrimRight(d.Text, "\n"))
		return err
	})
}

func newCorpusInfo(std stdio) *cobra.Command {
	find := func(_ *cobra.Command, index *corpus.Index, _ []string) (corpus.Info, error) { return index.Info(), nil }
	return showing(std, &cobra.Command{
		Use: "info FILE", Short: "Print what an index has: documents, terms, analyser, digest", Args: cobra.ExactArgs(1),
	}, withCorpus(find), func(w io.Writer, info corpus.Info) error {
		fmt.Fprintf(w, "documents: %d\nterms: %d\nwords: %d\n", info.Documents, info.Terms, info.Words)
		fmt.Fprintf(w, "text: %.1f MB\nindex: %.1f MB\n", float64(info.TextBytes)/1e6, float64(info.Bytes)/1e6)
		_, err := fmt.Fprintf(w, "analyser: %s\ndigest: %s\n", info.Analyser, info.Digest)
		return err
	})
}

func newCorpusServe(std stdio) *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use: "serve FILE", Short: "Serve an index over HTTP, in the protocol of Search-R1",
		Long: `Serves POST /retrieve as trainers know it from Search-R1 ({"queries": [...], "topk": 3, "return_scores": true}),
GET /doc/ID, which gives a document by id or URL, and GET /healthz with the digest. Prints its address, and ends with Ctrl-C.`,
		Args: cobra.ExactArgs(1),
	}
	serve := withCorpus(func(cmd *cobra.Command, index *corpus.Index, _ []string) (none struct{}, _ error) {
		return none, serve(cmd.Context(), addr, corpus.Handler(index), nil, func(at net.Addr) { fmt.Fprintf(std.out, "http://%s\n", at) })
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, err := serve(cmd, args)
		return err
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8000", "address to listen on; port 0 picks one")
	return cmd
}
