package all_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/daytona/daytonatest"
)

func init() {
	surroundings["daytona"] = func(t testing.TB) (sandbox.Options, error) {
		_, options, err := daytonatest.Start(t)
		return options, err
	}
}
