package main

import (
	"strings"
	"testing"
)

// TestShapes plays rows of another tool as they are, and says once what cannot be judged.
func TestShapes(t *testing.T) {
	rows := write(t, "rows.jsonl", `{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "What is 6 times 12?"}], "reward_model": {"style": "rule", "ground_truth": "72"}}
{"data_source": "judged", "prompt": [{"role": "user", "content": "Write."}], "reward_model": {"style": "model"}}
`)
	got := succeed(t, "check", "--dataset", rows)
	if !strings.Contains(got.out, "2 tasks: 0 fail, 1 without a reference solution, 1 without a verifier") || strings.Count(got.errOut, "1 of 2 tasks have no verifier") != 1 {
		t.Errorf("check: %s%s", got.out, got.errOut)
	}
	for want, args := range map[string][]string{
		`unknown shape "verk" (have chat, hermes,`: {"--shape", "verk"},
		"both a shape and a mapping":               {"--shape", "verl", "--map", "gsm8k"},
	} {
		if got := here(t, append([]string{"check", "--dataset", rows}, args...)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%v: exit code %d, %s, want %q", args, got.code, got.errOut, want)
		}
	}
}
