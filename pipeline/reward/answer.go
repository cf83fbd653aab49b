package reward

import (
	"context"
	"strings"

	"trajgen/pipeline/episode"
)

// ofAnswer makes a verifier from a function that only looks at the answer.
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

// clip shortens a detail.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
