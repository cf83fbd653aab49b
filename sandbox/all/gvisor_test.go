package all_test

import "trajgen/sandbox/sandboxtest"

func init() {
	const killable = "process 1 is the agent, and gVisor lets root kill it: the sandbox is lost then"
	caps["gvisor"] = sandboxtest.Caps{Lacks: map[string]string{
		"attempts": killable, "hostile workloads": killable, "disk flood": "files in /dev/shm have a limit of their own",
	}}
}
