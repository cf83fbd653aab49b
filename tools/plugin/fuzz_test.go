package plugin_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"trajgen/tools/plugin"
)

// FuzzOutput holds that whatever a plugin writes, in whatever pieces, is a well-formed result or an error.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"result":{"words":12}}`,
		`{"id":1,"result":null}` + "\n" + `{"id":2,"error":{"class":"a b","message":""}}`,
		`{"id":1,"tools":[{"name":"a","description":"b","parameters":{"type":"object"},"timeout_s":1e300,"reads":[]}]}`,
		`{"id":1,"tools":[{"name":"a","description":"b","parameters":{"type":"object","properties":{"x":{"$ref":"#"}}}}]}`,
		"{\"id\":1,\"result\":\"\xff\"}\r\n\n[]\n{",
		`{"id":1.5}` + "\n" + `{"ID":1,"Result":0}`,
	} {
		f.Add([]byte(seed+"\n"), 3)
	}
	f.Fuzz(func(t *testing.T, output []byte, pieces int) {
		results, errs := plugin.Answers(output, pieces%64)
		for _, result := range results {
			if !json.Valid(result) || !utf8.Valid(result) {
				t.Errorf("result %q", result)
			}
		}
		for _, err := range errs {
			if err.Error() == "" || len(err.Error()) > 64<<10 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
		whole, _ := plugin.Answers(output, 1)
		if len(whole) != len(results) {
			t.Errorf("%d results in pieces, %d as a whole", len(results), len(whole))
		}
	})
}
