package main

import (
	"strings"
	"testing"
)

func TestMisspeltFlag(t *testing.T) {
	for _, args := range [][]string{{"run", "--modle", "m"}, {"run", "--max_task=3"}, {"export", "--runn", "x"}} {
		got := here(t, args...)
		if got.code != exitUsage || !strings.Contains(got.errOut, "unknown flag: "+strings.SplitN(args[1], "=", 2)[0]+" (did you mean \"--") {
			t.Errorf("%v: exit code %d, %q", args, got.code, got.errOut)
		}
	}
}
