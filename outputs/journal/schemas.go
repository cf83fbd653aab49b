package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"trajgen/pipeline/episode"
)

// schemas are the tools that an episode was shown, as JSON and as that compressed. Thousands of episodes are shown the same
// ones, and they are most of what a short episode holds.
type schemas struct{ raw, zst []byte }

// shown remembers schemas, by the hash of the tools: keptSchemas bytes of them, and then anew.
var shown struct {
	sync.Map
	size atomic.Int64
	seed maphash.Seed
}

const keptSchemas = 16 << 20

func init() { shown.seed = maphash.MakeSeed() }

// schemasOf returns what is remembered of tools, and remembers it.
func schemasOf(tools []json.RawMessage) (*schemas, error) {
	var hash maphash.Hash
	hash.SetSeed(shown.seed)
	for _, tool := range tools {
		hash.Write(tool)
		hash.WriteByte(0)
	}
	key := hash.Sum64()
	if found, ok := shown.Load(key); ok && found.(*schemas).are(tools) {
		return found.(*schemas), nil
	}
	raw, err := encode(tools)
	if err != nil {
		return nil, err
	}
	s := &schemas{raw: bytes.TrimSuffix(raw, []byte("\n"))}
	s.zst = compressor.EncodeAll(s.raw, nil)
	size := int64(len(s.raw) + len(s.zst))
	if shown.size.Add(size) > keptSchemas {
		shown.Clear()
		shown.size.Store(size)
	}
	shown.Store(key, s)
	return s, nil
}

// are tells whether they are those of tools, byte for byte. Tools with white space between their tokens never are.
func (s *schemas) are(tools []json.RawMessage) bool {
	rest := s.raw
	for _, tool := range tools {
		if len(rest) < len(tool)+2 || !bytes.Equal(rest[1:len(tool)+1], tool) { // behind a bracket or a comma
			return false
		}
		rest = rest[len(tool)+1:]
	}
	return len(rest) == len("]")
}

// place stands for the tools in the JSON of an episode. No episode can hold it.
var place = `"` + rand.Text() + `"`

// encodeAround returns the JSON of an episode before its tools, theirs, and the rest with its line break. Without tools
// it is all in the rest.
func encodeAround(ep *episode.Episode) (before []byte, tools *schemas, after []byte, err error) {
	if len(ep.Tools) == 0 {
		after, err = encode(ep)
		return nil, &schemas{}, after, err
	}
	if tools, err = schemasOf(ep.Tools); err != nil {
		return nil, nil, nil, err
	}
	bare := *ep
	bare.Tools = []json.RawMessage{json.RawMessage(place)}
	raw, err := encode(&bare)
	if err != nil {
		return nil, nil, nil, err
	}
	before, after, found := bytes.Cut(raw, []byte("["+place+"]"))
	if !found {
		return nil, nil, nil, fmt.Errorf("the tools of episode %s are not in its JSON", ep.ID) // a bug of ours
	}
	return before, tools, after, nil
}

// encode is JSON with a line break in which HTML characters stay as they are.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}
