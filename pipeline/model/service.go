package model

import (
	"bytes"
	"encoding/json"
	"math"

	"trajgen/pipeline/episode"
)

// longestWord bounds a server's metadata, in bytes.
const longestWord = 200

// addService reads the server's metadata, which any chunk of a stream may have.
func addService(s *episode.Service, reply *wireReply) {
	setWord(&s.SystemFingerprint, reply.SystemFingerprint)
	setWord(&s.ServiceTier, reply.ServiceTier)
	var cost float64
	if raw := field(reply.Usage, "cost"); present(raw) && json.Unmarshal(raw, &cost) == nil && cost >= 0 && !math.IsInf(cost, 0) {
		s.Cost = &cost
	}
}

// setWord takes the first value that is a string or a number.
func setWord(to *string, raw ...json.RawMessage) {
	for _, r := range raw {
		if word := scalar(r); word != "" {
			*to, _ = clip(word, longestWord)
			return
		}
	}
}

// field is a field of an object, or nil.
func field(raw json.RawMessage, name string) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' || !bytes.Contains(raw, []byte(`"`+name+`"`)) && !bytes.ContainsRune(raw, '\\') {
		return nil // the usual case
	}
	var fields map[string]json.RawMessage
	json.Unmarshal(raw, &fields) // stays empty if this fails
	return fields[name]
}
