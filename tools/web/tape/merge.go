package tape

import "errors"

// Merge makes one recording of several. An episode that some of them have is answered as in the last of these.
func Merge(into string, from []string, o Options) (err error) {
	r, err := Create(into, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, dir := range from {
		if err := r.add(dir); err != nil {
			return err
		}
	}
	return nil
}

// add copies a recording. Its sessions come after those before.
func (r *Recorder) add(dir string) error {
	t, err := Open(dir, ReplayOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	last := r.session
	return errors.Join(t.Damage(), t.archive(func(_ int, a archived) error {
		a.Session += last
		r.session = max(r.session, a.Session)
		return r.keep(a.exchange, a.sent, a.got)
	}))
}
