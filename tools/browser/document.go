package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/source"
)

// open answers with a document of the corpus. What else its page may ask for is not there.
func (g *gate) open(ctx context.Context, e *fetch.EventRequestPaused) {
	missing := source.Errorf(source.Agent, source.NotInCorpus, "%s is not in the corpus", e.Request.URL)
	if e.ResourceType != network.ResourceTypeDocument || e.Request.Method != http.MethodGet {
		g.refuse(ctx, e, missing)
		return
	}
	found, err := g.cfg.View.Corpus().Document(ctx, e.Request.URL)
	if err != nil {
		if _, ok := errors.AsType[*source.Error](err); !ok {
			err = missing
		}
		g.refuse(ctx, e, err)
		return
	}
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	g.fulfil(ctx, e, &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(asPage(found)))})
}

var (
	markdownLink    = regexp.MustCompile(`\[([^\[\]]+)\]\(([^()\s]+)\)`)
	markdownHeading = regexp.MustCompile(`^(#{1,6})\s+(.*)$`)
)

// asPage is a document as a page: headings, paragraphs and links. The rest of its Markdown stands as it is.
func asPage(d corpus.Document) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!doctype html><meta charset=utf-8><title>%s</title><main>\n", html.EscapeString(d.Title))
	for block := range strings.SplitSeq(d.Text, "\n\n") {
		if h := markdownHeading.FindStringSubmatch(block); h != nil {
			fmt.Fprintf(&b, "<h%d>%s</h%d>\n", len(h[1]), linked(h[2]), len(h[1]))
		} else if strings.TrimSpace(block) != "" {
			fmt.Fprintf(&b, "<p style=\"white-space:pre-wrap\">%s</p>\n", linked(block))
		}
	}
	b.WriteString("</main>\n")
	return b.Bytes()
}

func linked(text string) string {
	return markdownLink.ReplaceAllString(html.EscapeString(text), `<a href="$2">$1</a>`)
}
