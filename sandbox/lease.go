package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"trajgen/sandbox/internal/state"
)

// Lease is a list on disk of what this process rents elsewhere than in sandboxes and is billed for, such as browsers. A sweep
// ends what the list of a dead process names. Its methods may be called from many goroutines, for one name from one at a time.
type Lease struct{ instance *state.Instance }

// Ender ends what a dead process rented, by the names and settings of its list. What has ended already is not an error.
type Ender func(ctx context.Context, names []string, settings map[string]string) error

// enders has those that are linked in, by the kind of what they end.
var enders = map[string]Ender{}

// RegisterEnder adds a kind of what is rented. The init function of the package that rents it calls it.
func RegisterEnder(kind string, end Ender) {
	if _, backend := kinds[kind]; backend || enders[kind] != nil {
		panic(fmt.Sprintf("a sweep of %q is registered twice", kind))
	}
	enders[kind] = end
}

// OpenLease begins a list below a state directory; "" is that of Options. The settings are what an Ender has to know, without
// secrets.
func OpenLease(stateDir, kind string, settings map[string]string) (*Lease, error) {
	if enders[kind] == nil {
		panic(fmt.Sprintf("no sweep of %q is registered", kind))
	}
	stateDir = cmp.Or(stateDir, DefaultStateDir(os.Getuid(), ""))
	instance, err := state.Create(stateDir, state.Owner{Backend: kind, PID: os.Getpid(), Settings: settings})
	if err != nil {
		return nil, err
	}
	return &Lease{instance}, nil
}

// Add writes a name down, before what it names can be billed where that is possible.
func (l *Lease) Add(name string) error {
	if !idPattern.MatchString(name) {
		return fmt.Errorf("name %q is not of 1 to 128 letters, digits, '-' and '_'", name)
	}
	return l.instance.Add(name, 0)
}

// Remove deletes a name whose thing has ended.
func (l *Lease) Remove(name string) error { return l.instance.Remove(name) }

// Names returns what stands on the list.
func (l *Lease) Names() ([]string, error) { return state.Names(l.instance.Dir) }

// Close deletes the list. Without Close, it is swept when the process has ended.
func (l *Lease) Close() error { return l.instance.Close() }
