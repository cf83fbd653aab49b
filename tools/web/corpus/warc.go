package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"golang.org/x/net/html/charset"

	"trajgen/tools/web/coding"
)

// maxRecord bounds a WARC record that may be a document, with the headers of its response.
const maxRecord = MaxDocument + 1<<20

// warc reads the documents of a WARC file: responses with status 200, resources and conversions, if they are HTML or text. A file
// whose records cannot be told apart any more is an error.
func (r *reader) warc(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text := bufio.NewReaderSize(file, 1<<16)
	if magic, _ := text.Peek(2); string(magic) == "\x1f\x8b" { // an error shows again when the file is read
		unpacked, err := gzip.NewReader(text) // goes on from record to record
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		text = bufio.NewReaderSize(unpacked, 1<<16)
	}
	for number := 1; ; number++ {
		place := fmt.Sprintf("%s: record %d", path, number)
		header, err := warcHeader(text)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = context.Cause(r.ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		size, err := strconv.ParseInt(header["content-length"], 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("%s: its Content-Length is %q", place, header["content-length"])
		}
		content := &io.LimitedReader{R: text, N: size}
		if !r.record(place, header, content, size) {
			return nil
		}
		if _, err := io.Copy(io.Discard, content); err != nil || content.N > 0 {
			return fmt.Errorf("%s: %w", place, cmp.Or(err, errors.New("the file is cut off")))
		}
	}
}

// warcHeader reads the fields of the next record, in lower case. io.EOF says that there is none.
func warcHeader(text *bufio.Reader) (map[string]string, error) {
	const most = 200
	fields := map[string]string{}
	begun := false
	for lines := 0; lines < most; {
		line, err := text.ReadSlice('\n')
		if err != nil && (err != io.EOF || begun || len(bytes.TrimSpace(line)) > 0) {
			switch err {
			case io.EOF:
				err = errors.New("the file is cut off")
			case bufio.ErrBufferFull:
				err = errors.New("it has a line that is too long")
			}
			return nil, err
		}
		if err == io.EOF {
			return nil, io.EOF
		}
		switch field := strings.TrimSpace(string(line)); {
		case field == "" && begun:
			return fields, nil
		case field == "": // between records
		case !begun && !strings.HasPrefix(field, "WARC/"):
			return nil, fmt.Errorf("it begins with %.40q in place of WARC/1.0", field)
		case !begun:
			begun = true
		default:
			lines++
			name, value, _ := strings.Cut(field, ":")
			fields[strings.ToLower(name)] = strings.TrimSpace(value)
		}
	}
	return nil, fmt.Errorf("it has more than %d fields", most)
}

// record reads a record that may be a document, and returns whether to go on.
func (r *reader) record(place string, header map[string]string, content io.Reader, size int64) bool {
	kind := strings.ToLower(header["warc-type"])
	if kind != "response" && kind != "resource" && kind != "conversion" {
		return true
	}
	bare := func(name string) string { return strings.Trim(header[name], "<>") }
	d := Document{ID: bare("warc-record-id"), URL: bare("warc-target-uri"), Place: place}
	body, contentType := io.Reader(io.LimitReader(content, maxRecord)), header["content-type"]
	if kind == "response" {
		if media, _, _ := mime.ParseMediaType(contentType); media != "application/http" { // such as text/dns
			return true
		}
		response, err := http.ReadResponse(bufio.NewReader(body), nil)
		if err != nil {
			return r.bad(place, fmt.Errorf("the response cannot be read: %w", err))
		}
		if response.StatusCode != http.StatusOK {
			r.other(place)
			return true
		}
		contentType = response.Header.Get("Content-Type")
		if body, err = decoded(response); err != nil {
			return r.bad(place, err)
		}
	}
	media, parameters, _ := mime.ParseMediaType(contentType)
	page := media == "text/html" || media == "application/xhtml+xml"
	if !page && media != "text/plain" && media != "text/markdown" {
		r.other(place)
		return true
	}
	if size > maxRecord {
		return r.bad(place, fmt.Errorf("it is larger than %d MiB", MaxDocument>>20))
	}
	all, err := readAll(body)
	switch {
	case err != nil:
	case page:
		d.Title, d.Text, err = r.html(all, contentType, d.URL)
	default:
		d.Text, err = inUTF8(all, parameters["charset"])
	}
	if err != nil {
		return r.bad(place, err)
	}
	d.Title = cmp.Or(d.Title, d.URL)
	return r.give(d)
}

// decoded is the body of a response without its Content-Encoding, which many archives have already taken away.
func decoded(response *http.Response) (io.Reader, error) {
	body, encoding := bufio.NewReader(response.Body), strings.ToLower(response.Header.Get("Content-Encoding"))
	head, _ := body.Peek(2) // an error shows again when the body is read
	switch {
	case encoding == "deflate":
		return zlib.NewReader(body)
	case strings.HasSuffix(encoding, "gzip") && string(head) != "\x1f\x8b":
		return body, nil
	}
	plain, err := coding.Reader(encoding, body)
	if err == coding.ErrUnknown {
		err = fmt.Errorf("its Content-Encoding is %q (have gzip, deflate, br, zstd)", encoding)
	}
	return plain, err
}

// inUTF8 decodes a text in the charset that it came with.
func inUTF8(text []byte, label string) (string, error) {
	if label == "" {
		return string(text), nil
	}
	plain, err := charset.NewReaderLabel(label, bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	all, err := io.ReadAll(plain)
	return string(all), err
}
