package run

import "io"

// meanwhile is work in a goroutine.
type meanwhile struct {
	done chan struct{} // closed when err is set
	err  error
}

// begin starts the work. The caller must call wait.
func begin(work func() error) *meanwhile {
	m := &meanwhile{done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.err = work()
	}()
	return m
}

// wait waits for the end and returns the error.
func (m *meanwhile) wait() error {
	<-m.done
	return m.err
}

// failed is the error that the work ended with; nil while it goes on.
func (m *meanwhile) failed() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}

// afterwards writes when the work has ended without an error. After an error only the error is reported.
type afterwards struct {
	io.Writer
	work *meanwhile
}

func (a afterwards) Write(p []byte) (int, error) {
	if a.work.wait() != nil {
		return len(p), nil
	}
	return a.Writer.Write(p)
}
