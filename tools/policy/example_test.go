package policy_test

import (
	"fmt"

	"trajgen/tools/policy"
)

func Example() {
	for _, command := range []string{
		`grep -r 'rm -rf /' docs`,
		`git push --force`,
		`a=rm; sudo "$a" -rf /`,
	} {
		verdict := policy.Check(command, policy.Context{Dir: "/work"})
		fmt.Printf("%s %q\n", verdict.Verdict, verdict.Rule)
	}
	// Output:
	// allow ""
	// ask "git-push-force"
	// block "rm-system"
}
