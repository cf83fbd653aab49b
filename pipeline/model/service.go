package model

import (
	"bytes"
	"encoding/json"
	"math"

	"trajgen/pipeline/episode"
)

// longestWord bounds what a server says about itself.
const longestWord = 200

// addService reads what a server says beside the message. In a stream it may say it in any chunk.
func addService(s *episode.Service, reply *wireReply) {
	setWord(&s.SystemFingerprint, reply.SystemFingerprint)
	setWord(&s.ServiceTier, reply.ServiceTier)
	var cost float64
	if raw := field(reply.Usage, "cost"); present(raw) && json.Unmarshal(raw, &cost) == nil && cost >= 0 && !math.IsInf(cost, 0) {
		s.Cost = &cost
	}
}

// setWord takes the first that is a word or a number.
func setWord(to *string, raw ...json.RawMessage) {
	for _, r := range raw {
		if word := scalar(r); word != "" {
			*to, _ = clip(word, longestWord)
			return
		}
	}
}

// field is a field of an object, or nothing.
func field(raw json.RawMessage, name string) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' || !bytes.Contains(raw, []byte(`"`+name+`"`)) && !bytes.ContainsRune(raw, '\\') {
		return nil // as nearly always
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields[name]
}
