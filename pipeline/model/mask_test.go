package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestMaskedBody reads bodies in parts of every size: what comes out is the same, and has no secret in any form.
func TestMaskedBody(t *testing.T) {
	const key, header = `sk-/a"b+c<d>`, "Bearer second-secret-2"
	m, _ := Config{APIKey: key, Secrets: []string{header, "Basic dXNlcjpwYXNzd29yZC0x", "lm-studio", "sk"}}.masks()
	cut := errors.New("cut")
	tests := []struct {
		name, give, want string
		end              error
	}{
		{"nothing", `{"content":"lm-studio speaks sk- and sk-/a and Bearer second"}`, `{"content":"lm-studio speaks sk- and sk-/a and Bearer second"}`, io.EOF},
		{"JSON", `{"id":"x` + `sk-/a\"b+c<d>` + `y"}`, `{"id":"x[secret]y"}`, io.EOF},
		{"JSON of others", `["sk-\/a\"b+c<d>","sk-/a\"b+c\u003cd\u003e"]`, `["[secret]","[secret]"]`, io.EOF},
		{"URLs", `{"url":"http://h/?key=sk-%2Fa%22b%2Bc%3Cd%3E&x","path":"/sk-%2Fa%22b+c%3Cd%3E/"}`, `{"url":"http://h/?key=[secret]&x","path":"/[secret]/"}`, io.EOF},
		{"text", "no " + key + key + "!", "no [secret][secret]!", io.EOF},
		{"headers", "Bearer second-secret-2, Token second-secret-2, user:password-1", "[secret], Token [secret], [secret]", io.EOF},
		{"cut within one", `{"content":"Bearer second-sec`, `{"content":"[secret]`, cut},
		{"cut behind a word", `{"content":"Bearer `, `{"content":"Bearer `, cut},
		{"all of it at the end", header, "[secret]", io.EOF},
		{"empty", "", "", io.EOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.give)+1; size++ {
				for _, whole := range []bool{true, false} { // also with the end beside the last bytes
					var from io.Reader = io.MultiReader(strings.NewReader(tt.give), iotest.ErrReader(tt.end))
					if whole {
						from = iotest.DataErrReader(from)
					}
					x := &exchange{}
					body := &maskedBody{ReadCloser: io.NopCloser(from), mask: m, x: x}
					var got bytes.Buffer
					var err error
					for p := make([]byte, size); err == nil; {
						var n int
						n, err = body.Read(p)
						got.Write(p[:n])
					}
					if got.String() != tt.want || err != tt.end || x.masked != (tt.want != tt.give) {
						t.Fatalf("in parts of %d: %q, %v, masked %v; want %q, %v", size, got.String(), err, x.masked, tt.want, tt.end)
					}
					if json.Valid([]byte(tt.give)) && !json.Valid(got.Bytes()) {
						t.Fatalf("%q is not JSON", got.String())
					}
				}
			}
		})
	}
}

// TestMaskCostsNothing holds that a body without secrets is neither copied nor held back.
func TestMaskCostsNothing(t *testing.T) {
	m, _ := Config{APIKey: "sk-1234567890abcdef"}.masks()
	chunk := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"a task of sk\"}}]}\n\n")
	from := bytes.NewReader(chunk)
	body, p := &maskedBody{ReadCloser: io.NopCloser(from), mask: m, x: &exchange{}}, make([]byte, 4096)
	allocs := testing.AllocsPerRun(100, func() {
		from.Reset(chunk)
		if n, err := body.Read(p); n != len(chunk) || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for each read", allocs)
	}
}
