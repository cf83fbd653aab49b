package tools_test

import (
	"fmt"
	"testing"

	"trajgen/sandbox"
)

// BenchmarkTerminal measures a command with everything around it: a shell that takes over the state, runs it and
// reports.
func BenchmarkTerminal(b *testing.B) {
	for _, name := range sandbox.Names() {
		b.Run(name, func(b *testing.B) {
			e := open(b, name, "all")
			e.ok("terminal", args{"command": "export A=1; f() { echo f; }; cd /"})
			b.ReportAllocs()
			for b.Loop() {
				if call := e.call("terminal", args{"command": ":"}); call.Result != `{"output":"","exit_code":0,"error":null}` {
					b.Fatal(fmt.Sprint(call.Result))
				}
			}
		})
	}
}
