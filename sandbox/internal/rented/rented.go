// Package rented is what backends share that rent a machine of a service for each sandbox: the agent that serves the
// sandbox from inside, the record of what there is, and the end of all of it.
package rented

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"strings"

	"trajgen/sandbox"
)

// Provider is who offers a service.
type Provider struct {
	Name       string // of the backend
	About      string // for people who choose
	Settings   []sandbox.Setting
	Guarantees sandbox.Guarantees // what the provider says; a self-test adds what it finds
	// Connect makes the service for an instance, whose machines bear a mark that no other's do. It says what is wrong with
	// the settings; those that are not declared were refused before.
	Connect func(ctx context.Context, settings map[string]string, mark string, logger *slog.Logger) (Service, error)
}

// Kind is the backend that rents machines of a provider.
func (p Provider) Kind() sandbox.Kind {
	return sandbox.Kind{About: p.About, Open: p.open, Settings: p.Settings, Sweep: p.sweep}
}

// Service rents machines.
type Service interface {
	// Create makes a machine. When it fails there may be one none the less, which Sweep finds, unless the error is None.
	Create(ctx context.Context, order Order) (Machine, error)
	// Sweep ends all machines of this instance.
	Sweep(ctx context.Context) error
	// Close frees what the service's client holds. It is called last.
	Close() error
}

// None is an error of a request that surely made no machine.
type None struct{ Cause error }

func (n None) Error() string { return n.Cause.Error() }

// Unwrap returns the cause.
func (n None) Unwrap() error { return n.Cause }

// Order is what a machine is to be.
type Order struct {
	Spec sandbox.Spec // complete
	From Seal         // what the machine begins with, instead of Spec.Image; nil is none
}

// Machine is a machine of a service.
type Machine interface {
	// Image says how the machine's image wants to be used.
	Image() Image
	// Start starts the agent and returns its input and output.
	Start(ctx context.Context) (io.ReadWriteCloser, error)
	// Destroy ends the machine with all that runs in it, and returns when it has ended. It is no error when it had.
	Destroy(ctx context.Context) error
}

// Sealer is a Machine whose files can be sealed.
type Sealer interface {
	Machine
	// Seal keeps the files as they are.
	Seal(ctx context.Context) (Seal, error)
}

// Seal is the sealed files of a machine.
type Seal interface {
	// Delete gives them up.
	Delete(ctx context.Context) error
}

// Image is how an image wants to be used.
type Image struct {
	Workdir string            // "", "/" and root's home mean none
	Env     map[string]string // beside what a backend sets itself
}

// mark is the record of what an instance's machines bear.
const mark = "mark"

// record is what a sweep has to know of an instance, without secrets, and a mark for it: its name is unique on this
// machine alone.
func (p Provider) record(settings map[string]string) map[string]string {
	recorded := map[string]string{mark: strings.ToLower(rand.Text())}
	for _, s := range p.Settings {
		if value := settings[s.Name]; value != "" && !s.Secret {
			recorded[s.Name] = value
		}
	}
	return recorded
}

// sweep ends the machines of a dead runner. Secrets are never on disk, so they are taken from where they always are.
func (p Provider) sweep(ctx context.Context, instance sandbox.Instance) error {
	settings := maps.Clone(instance.Settings)
	found := settings[mark]
	if found == "" {
		return fmt.Errorf("instance %s: nothing is recorded of what its machines bear", instance.Name)
	}
	delete(settings, mark)
	for _, s := range p.Settings {
		if s.Secret {
			settings[s.Name] = os.Getenv(s.Env)
		}
	}
	service, err := p.Connect(ctx, settings, found, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(service.Sweep(ctx), service.Close())
}

// CheckURL says what is wrong with the address that a setting names.
func CheckURL(setting, url string) error {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return nil
	}
	return fmt.Errorf("setting %s: %q does not begin with https:// or http://", setting, url)
}
