package run

import "errors"

// Mistake is an error that who wrote the run file can mend: nothing was started.
type Mistake struct{ error }

func (m Mistake) Unwrap() error { return m.error }

// AsMistake makes an error one of these; nil stays nil.
func AsMistake(err error) error {
	if _, ok := errors.AsType[Mistake](err); ok || err == nil {
		return err
	}
	return Mistake{err}
}
