package all_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/daytona/daytonatest"
	"trajgen/sandbox/sandboxtest"
)

func init() {
	caps["daytona"] = sandboxtest.Caps{Lacks: map[string]string{"no file outgrows the limit of the disk": "the limit is the service's own, and this is a stand-in for it"}}
	surroundings["daytona"] = func(t testing.TB) (sandbox.Options, error) {
		_, options, err := daytonatest.Start(t)
		return options, err
	}
}
