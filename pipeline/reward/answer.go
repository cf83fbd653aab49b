package reward

import (
	"context"
	"strings"

	"trajgen/pipeline/episode"
)

// ofAnswer makes a verifier of one that looks at nothing but the answer.
func ofAnswer(verify func(check episode.Check, answer string) (float64, string, error)) verifier {
	return func(_ context.Context, check episode.Check, subject Subject) (judgement, error) {
		value, detail, err := verify(check, subject.Answer)
		return judgement{value: value, detail: detail}, err
	}
}

func verdict(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// clip keeps a detail readable.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
