// Package mark finds processes of this machine again that descend from a command, whatever they do to hide it.
package mark

// Variable is the environment variable by which processes of a sandbox are known again: its directory and, below that, the
// number of the command that they descend from.
const Variable = "TRAJGEN_SANDBOX"
