package all_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/ssh/sshtest"
)

func init() {
	surroundings["ssh"] = func(t testing.TB) (sandbox.Options, error) {
		server, err := sshtest.Start(t, sshtest.Account{})
		if err != nil {
			return sandbox.Options{}, err
		}
		return sandbox.Options{Settings: server.Settings}, nil
	}
}
