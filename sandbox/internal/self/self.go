// Package self is this program as it starts itself again: the names it has then, and what its children inherit.
package self

// Helper is the name under which a program runs a helper, in a sandbox or as an agent.
const Helper = "trajgen-helper"

// roles is written by package initialisation alone.
var roles = map[string]func(){}

// Role has Play call main where this program is started under a name. It is called from init functions.
func Role(name string, main func()) { roles[name] = main }

// Play plays the role of a name. It returns when there is none.
func Play(name string) {
	if main, ok := roles[name]; ok {
		main()
	}
}
