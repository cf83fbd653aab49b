package extract

import (
	"fmt"
	"net/url"
	"strings"

	"trajgen/tools/web/source"
)

// baseOf returns what the links of a page are relative to.
func baseOf(page *source.Page) *url.URL {
	for _, address := range []string{page.FinalURL, page.URL} {
		if u, err := url.Parse(address); err == nil && address != "" {
			return u
		}
	}
	return &url.URL{}
}

// resolve returns where a link leads, if a reader of the text can use it: a page, a file or an address, and another place than
// the page itself.
func resolve(base *url.URL, ref string) (string, bool) {
	ref = strings.TrimSpace(ref)
	if ref == "" || ref[0] == '#' || len(ref) > maxURL {
		return "", false
	}
	u, err := base.Parse(ref)
	if err != nil {
		return "", false
	}
	switch u.Scheme {
	case "http", "https", "ftp", "mailto", "tel", "":
	default:
		return "", false
	}
	address := strings.ReplaceAll(u.String(), " ", "%20")
	if u.Fragment != "" {
		if page, _, _ := strings.Cut(base.String(), "#"); strings.HasPrefix(address, page+"#") {
			return "", false
		}
	}
	return address, len(address) <= maxURL
}

// list returns links as a list in Markdown.
func list(links []source.Link) string {
	var text strings.Builder
	for _, link := range links {
		fmt.Fprintf(&text, "- %s\n", markdownLink(link))
	}
	return text.String()
}

// markdownLink returns a link in Markdown.
func markdownLink(link source.Link) string {
	if link.Text == "" {
		return "<" + link.URL + ">"
	}
	return "[" + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(link.Text) + "](" + link.URL + ")"
}
