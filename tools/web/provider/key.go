package provider

import (
	"context"
	"net/http"
)

// Key is a variable of the environment that a service reads. Setup, doctor and what masks secrets range over the keys that each
// package declares for its services.
type Key struct {
	Toolset  string // that the service is for
	Service  string
	Variable string
	Public   bool // the value is an address, and no secret
	// Use is the part of a run file, as YAML, that makes a run use the service; "" where the variable suffices. VALUE stands in it
	// for the answer to Ask, and HOST for its host name.
	Use, Ask string
	// Try asks the service once, with the Key, the Transport and the clock of a Config. An error is a *source.Error unless ctx has
	// ended. It is nil where no harmless request tells whether the key is taken.
	Try Try
}

// Try finds out whether a service takes a key.
type Try func(ctx context.Context, c Config) error

// Get is a Try that reads what stands at a path below a base URL.
func Get(path string, at ClientConfig) Try {
	return func(ctx context.Context, c Config) error {
		asked := at
		asked.Key, asked.Transport, asked.Now = c.Key, c.Transport, c.Now
		_, err := NewClient(asked).Send(ctx, Request{Method: http.MethodGet, Path: path})
		return err
	}
}
