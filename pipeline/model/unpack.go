package model

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// unpacking is a transport that decompresses replies which servers compress without being asked to.
type unpacking struct{ *http.Transport }

func (u unpacking) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding != "" && encoding != "identity" {
		resp.Body = &packed{ReadCloser: resp.Body, encoding: encoding}
	}
	return resp, nil
}

// packed is a body that is decompressed while it is read. It reads the header only at the first Read, as a stream may begin late.
type packed struct {
	io.ReadCloser
	encoding string
	content  io.Reader
}

func (p *packed) Read(b []byte) (int, error) {
	if p.content == nil {
		if err := p.open(); err != nil {
			return 0, err
		}
	}
	return p.content.Read(b)
}

func (p *packed) open() (err error) {
	if p.encoding != "gzip" && p.encoding != "x-gzip" {
		return &refusal{class: ClassMalformed, message: fmt.Sprintf("the reply is compressed as %q, which was not asked for: turn that off in the server or the proxy", p.encoding)}
	}
	body := bufio.NewReader(p.ReadCloser)
	if magic, _ := body.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) { // a proxy has decompressed the body and kept the header
		p.content = body
		return nil
	}
	p.content, err = gzip.NewReader(body)
	return err
}
