package packed_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"trajgen/sandbox/internal/packed"
)

func TestPacked(t *testing.T) {
	t.Run("with the command zstd, if it is here", testPacked)
	t.Run("without it", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		testPacked(t)
	})
}

func testPacked(t *testing.T) {
	content := make([]byte, 100<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	programs := []packed.Program{
		{Name: "sandboxd", Content: content},
		{Name: "helper", Content: append([]byte("more"), content...)},
		{Name: "other", Content: []byte("other")},
	}
	pack := func() []byte {
		var archive bytes.Buffer
		if err := packed.Write(&archive, programs); err != nil {
			t.Fatal(err)
		}
		return archive.Bytes()
	}
	archive := pack()
	if !bytes.Equal(archive, pack()) {
		t.Error("the same programs are other bytes")
	}
	if len(archive) > len(content)*11/10 {
		t.Errorf("got %d bytes for two programs of %d that are nearly the same", len(archive), len(content))
	}
	tests := []struct {
		names []string
		want  int // how many come along
	}{
		{[]string{"sandboxd"}, 1},
		{[]string{"helper"}, 2},
		{[]string{"helper", "sandboxd"}, 2},
		{[]string{"other"}, 3},
		{nil, 3},
	}
	for _, tt := range tests {
		got, err := packed.Read(bytes.NewReader(archive), tt.names...)
		want := map[string][]byte{}
		for _, p := range programs[:tt.want] {
			want[p.Name] = p.Content
		}
		if err != nil || !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("Read(%q): got %d programs, %v, want %d", tt.names, len(got), err, tt.want)
		}
	}
	if _, err := packed.Read(bytes.NewReader(archive), "sandboxd", "missing"); err == nil || !strings.Contains(err.Error(), "unpack missing") {
		t.Errorf("a program that is not there: got %v", err)
	}
	for _, broken := range [][]byte{[]byte("no archive"), archive[:len(archive)/2], archive[:len(archive)-1], append([]byte{0}, archive...)} {
		if got, err := packed.Read(bytes.NewReader(broken)); err == nil {
			t.Errorf("a broken archive of %d bytes: got %d programs, want an error", len(broken), len(got))
		}
	}
}
