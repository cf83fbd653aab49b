package run

import "errors"

// Mistake is an error that the author of the run file can resolve: no episode has begun.
type Mistake struct{ error }

func (m Mistake) Unwrap() error { return m.error }

// AsMistake makes an error a Mistake; nil stays nil.
func AsMistake(err error) error {
	if _, ok := errors.AsType[Mistake](err); ok || err == nil {
		return err
	}
	return Mistake{err}
}
