// Package rented is the common part of backends that rent a machine from a service for each sandbox: the agent that serves the
// sandbox from inside, the record of machines, and their end.
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

// Provider describes a service that rents machines.
type Provider struct {
	Name       string // of the backend
	About      string // one line that helps users to choose
	Settings   []sandbox.Setting
	Guarantees sandbox.Guarantees // what the provider states; the self-test corrects it
	// Connect makes the service for an instance, whose machines have a mark of their own. It returns what is wrong with the
	// settings; undeclared ones have been refused before.
	Connect func(ctx context.Context, settings map[string]string, mark string, logger *slog.Logger) (Service, error)
}

// Kind returns the backend that rents machines from the provider.
func (p Provider) Kind() sandbox.Kind {
	return sandbox.Kind{About: p.About, Open: p.open, Settings: p.Settings, Sweep: p.sweep}
}

// Service rents machines.
type Service interface {
	// Create makes a machine. When it fails, it may have made one all the same, which Sweep finds, unless the error is None.
	Create(ctx context.Context, order Order) (Machine, error)
	// Sweep ends all machines of this instance.
	Sweep(ctx context.Context) error
	// Close frees the resources of the service's client. It is called last.
	Close() error
}

// None is an error of a request that certainly made no machine.
type None struct{ Cause error }

func (n None) Error() string { return n.Cause.Error() }

// Unwrap returns the cause.
func (n None) Unwrap() error { return n.Cause }

// Order describes the machine to make.
type Order struct {
	Spec sandbox.Spec // complete
	From Seal         // initial files, instead of Spec.Image; nil is none
}

// Machine is a machine of a service.
type Machine interface {
	// Image returns the settings of the machine's image.
	Image() Image
	// Start starts the agent and returns its input and output.
	Start(ctx context.Context) (io.ReadWriteCloser, error)
	// Destroy ends the machine with all that runs in it, and waits for its end. A machine that has ended is not an error.
	Destroy(ctx context.Context) error
}

// Sealer is a Machine that can make snapshots of its files.
type Sealer interface {
	Machine
	// Seal makes a snapshot of the files.
	Seal(ctx context.Context) (Seal, error)
}

// Seal is a snapshot of a machine's files.
type Seal interface {
	// Delete deletes the snapshot.
	Delete(ctx context.Context) error
}

// Image is the settings that an image brings.
type Image struct {
	Workdir string            // "", "/" and root's home mean none
	Env     map[string]string // beside what a backend sets itself
}

// mark is the key of the machines' mark in an instance's record.
const mark = "mark"

// record returns what a sweep has to know of an instance, without secrets, and a mark for it: the instance's name is unique on
// this machine only.
func (p Provider) record(settings map[string]string) map[string]string {
	recorded := map[string]string{mark: strings.ToLower(rand.Text())}
	for _, s := range p.Settings {
		if value := settings[s.Name]; value != "" && !s.Secret {
			recorded[s.Name] = value
		}
	}
	return recorded
}

// sweep ends the machines of a dead runner. Secrets are never on disk, so it reads them from their variables.
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

// CheckURL validates the address in a setting.
func CheckURL(setting, url string) error {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return nil
	}
	return fmt.Errorf("setting %s: %q does not begin with https:// or http://", setting, url)
}
