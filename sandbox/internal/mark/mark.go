// Package mark finds the descendants of a command among the processes of this machine, even if they try to hide it.
package mark

// Variable is the environment variable that marks processes of a sandbox: the sandbox's directory and, below that, the number
// of the command that they descend from.
const Variable = "TRAJGEN_SANDBOX"
