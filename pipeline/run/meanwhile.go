package run

import "io"

// meanwhile is work that goes on beside other work.
type meanwhile struct {
	done chan struct{} // closed when err is set
	err  error
}

// begin starts the work. Who begins waits.
func begin(work func() error) *meanwhile {
	m := &meanwhile{done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.err = work()
	}()
	return m
}

// wait returns what came of it.
func (m *meanwhile) wait() error {
	<-m.done
	return m.err
}

// failed is the error that it ended with; nil as long as it goes on.
func (m *meanwhile) failed() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}

// afterwards writes when the work has ended well. After a failure only the failure is told.
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
