package all_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/modal/modaltest"
	"trajgen/sandbox/sandboxtest"
)

func init() {
	surroundings["modal"] = func(t testing.TB) (sandbox.Options, error) {
		_, options, err := modaltest.Start(t)
		return options, err
	}
	caps["modal"] = sandboxtest.Caps{Lacks: map[string]string{"hostile workloads": "among them is a kill -1, which ends the agent: it is not the machine's first process"}}
}
