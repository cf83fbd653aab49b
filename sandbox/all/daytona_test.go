package all_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/daytona/daytonatest"
	"trajgen/sandbox/sandboxtest"
)

func init() {
	surroundings["daytona"] = func(t testing.TB) (sandbox.Options, error) {
		_, options, err := daytonatest.Start(t)
		return options, err
	}
	caps["daytona"] = sandboxtest.Caps{Lacks: map[string]string{"hostile workloads": "among them is a kill -1, which ends the agent: it is not the machine's first process"}}
}
