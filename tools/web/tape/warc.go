package tape

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"
)

// WARC writes the recording as a WARC 1.1 file, each record compressed on its own: a request and a response for each exchange, and
// only a request where no answer came. The same recording gives the same bytes.
func (t *Tape) WARC(w io.Writer, software string) error {
	out := warcWriter{to: w, packer: gzip.NewWriter(nil), digest: t.digest}
	var began time.Time
	if len(t.exchanges) > 0 {
		first, err := t.exchange(0)
		if err != nil {
			return err
		}
		began = first.began()
	}
	info := fmt.Sprintf("software: %s\r\nformat: WARC File Format 1.1\r\nconformsTo: "+
		"http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n", software)
	about := out.id("warcinfo", 0)
	if err := out.record("warcinfo", about, began, "application/warc-fields", []byte(info), nil); err != nil {
		return err
	}
	return t.archive(func(i int, a archived) error {
		asked, answered := out.id("request", i), out.id("response", i)
		fields := []string{"WARC-Warcinfo-ID", about, "WARC-Target-URI", a.URL}
		if a.Status == 0 {
			answered = ""
		} else {
			more := slices.Concat(fields, payload(a.got), []string{"WARC-Truncated", a.truncated()})
			if err := out.record("response", answered, a.began(), "application/http;msgtype=response", a.response(), more); err != nil {
				return err
			}
		}
		more := slices.Concat(fields, payload(a.sent), []string{"WARC-Concurrent-To", answered})
		return out.record("request", asked, a.began(), "application/http;msgtype=request", a.request(), more)
	})
}

// payload is the field with the digest of a payload, in the form that other programs look for.
func payload(body []byte) []string {
	sum := sha1.Sum(body)
	return []string{"WARC-Payload-Digest", "sha1:" + base32.StdEncoding.EncodeToString(sum[:])}
}

// truncated says why a body ends where it does; "" where that is its end.
func (x *exchange) truncated() string {
	switch {
	case x.Failure != nil:
		return "disconnect"
	case x.Cut:
		return "length"
	}
	return ""
}

// warcWriter writes records.
type warcWriter struct {
	to     io.Writer
	packer *gzip.Writer
	digest string // of the recording
}

// id names a record: the same in each export of the recording.
func (w *warcWriter) id(kind string, number int) string {
	b := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(w.digest+kind), uint64(number)))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // a UUID of version 8
	return fmt.Sprintf("<urn:uuid:%x-%x-%x-%x-%x>", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// record writes a record with further fields, by name and value; those without a value are left out.
func (w *warcWriter) record(kind, id string, date time.Time, contentType string, block []byte, fields []string) error {
	w.packer.Reset(w.to)
	fmt.Fprintf(w.packer, "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: %s\r\nWARC-Date: %s\r\n", kind, id, date.Format("2006-01-02T15:04:05.000Z"))
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			fmt.Fprintf(w.packer, "%s: %s\r\n", fields[i], fields[i+1])
		}
	}
	fmt.Fprintf(w.packer, "Content-Type: %s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", contentType, len(block), block)
	return w.packer.Close() // it has the error of each write
}
