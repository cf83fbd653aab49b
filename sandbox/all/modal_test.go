package all_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/modal/modaltest"
)

func init() {
	surroundings["modal"] = func(t testing.TB) (sandbox.Options, error) {
		_, options, err := modaltest.Start(t)
		return options, err
	}
}
