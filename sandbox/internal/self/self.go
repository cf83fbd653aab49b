// Package self starts this program again in other roles: the names of the roles, and what its children inherit.
package self

// Helper is the role of helpers, in a sandbox, and of agents.
const Helper = "trajgen-helper"

// roles is written by init functions only.
var roles = map[string]func(){}

// Role registers the main function of a role. It is called from init functions.
func Role(name string, main func()) { roles[name] = main }

// Play runs the role with a name. It returns when there is none.
func Play(name string) {
	if main, ok := roles[name]; ok {
		main()
	}
}
