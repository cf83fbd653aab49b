package tape

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"trajgen/tools/web/coding"
)

// Archives are the formats in which a recording can be written for other programs, and what writes them. Software names this program.
var Archives = map[string]func(t *Tape, w io.Writer, software string) error{
	"warc": (*Tape).WARC,
	"har":  (*Tape).HAR,
}

// archived is an exchange with its bodies.
type archived struct {
	*exchange
	url       *url.URL
	sent, got []byte
}

// archive goes through the exchanges in recorded order.
func (t *Tape) archive(each func(i int, a archived) error) error {
	for i := range t.exchanges {
		x, got, err := t.read(int32(i))
		if err != nil {
			return err
		}
		a := archived{exchange: x, got: got}
		if a.url, err = url.Parse(x.URL); err != nil {
			return unusable(err)
		}
		if a.sent, err = t.body(x.SentBody); err != nil {
			return err
		}
		if err := each(i, a); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) began() time.Time { return time.UnixMilli(x.Began).UTC() }

// reason is the text beside the status.
func (x *exchange) reason() string { return http.StatusText(x.Status) }

// answered are the headers of the answer. A secret may have been taken out of the body, or its end may be missing.
func (a archived) answered() http.Header {
	header := maps.Clone(a.Header)
	delete(header, "Transfer-Encoding") // which the body no longer has
	if header.Get("Content-Length") != "" && a.Method != http.MethodHead {
		header.Set("Content-Length", strconv.Itoa(len(a.got)))
	}
	return header
}

// request and response are the exchange as it was on the wire, in HTTP/1.1.
func (a archived) request() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", a.Method, a.url.RequestURI(), a.url.Host)
	writeHeader(&b, a.Sent)
	if len(a.sent) > 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(a.sent))
	}
	b.WriteString("\r\n")
	b.Write(a.sent)
	return b.Bytes()
}

func (a archived) response() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.Status, a.reason())
	writeHeader(&b, a.answered())
	b.WriteString("\r\n")
	b.Write(a.got)
	return b.Bytes()
}

func writeHeader(b *bytes.Buffer, header http.Header) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			fmt.Fprintf(b, "%s: %s\r\n", name, value)
		}
	}
}

// plain is the body of the answer without its encoding, or as it came where that cannot be undone.
func (a archived) plain() []byte {
	r, err := coding.Reader(a.Header.Get("Content-Encoding"), bytes.NewReader(a.got))
	if err != nil {
		return a.got
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil && len(text) == 0 || len(text) > maxBody {
		return a.got
	}
	return text
}
