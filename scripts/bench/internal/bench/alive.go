package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"trajgen/sandbox"
)

// Alive is what sandboxes cost while so many are open.
type Alive struct {
	Alive  int     `json:"alive"`
	OpenMS float64 `json:"open_ms"` // the next one
	ExecMS float64 `json:"exec_ms"` // true, in one of them
	MBEach float64 `json:"mb_each"` // of the machine's memory, by what it has left; 0 where it does not say
}

// MeasureAlive opens sandboxes up to so many, and looks at 1, 10, 100, 500, 1,000 and all.
func MeasureAlive(ctx context.Context, backend sandbox.Backend, most int) (_ []Alive, err error) {
	var boxes []sandbox.Sandbox
	defer func() { err = errors.Join(err, closeAll(boxes)) }()
	steps := slices.DeleteFunc([]int{1, 10, 100, 500, 1000}, func(n int) bool { return n >= most })
	before := number(field("/proc/meminfo", "MemAvailable"))
	var all []Alive
	for _, alive := range append(steps, most) {
		for len(boxes) < alive {
			sb, err := openBox(ctx, backend, len(boxes))
			if err != nil {
				return nil, err
			}
			boxes = append(boxes, sb)
		}
		a := Alive{Alive: alive, MBEach: max(0, (before-number(field("/proc/meminfo", "MemAvailable")))/1024/float64(alive))}
		if a.OpenMS, a.ExecMS, err = look(ctx, backend, boxes); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func openBox(ctx context.Context, backend sandbox.Backend, n int) (sandbox.Sandbox, error) {
	sb, err := backend.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("bench-%d", n)})
	if err != nil {
		return nil, fmt.Errorf("open sandbox %d: %w", n+1, err)
	}
	return sb, nil
}

// look opens one more, some times over, and runs true in some of those there are.
func look(ctx context.Context, backend sandbox.Backend, boxes []sandbox.Sandbox) (open, exec float64, err error) {
	const tries = 9
	var opens, execs []time.Duration
	for i := range tries {
		began := time.Now()
		sb, err := openBox(ctx, backend, len(boxes))
		if err != nil {
			return 0, 0, err
		}
		opens = append(opens, time.Since(began))
		if err := sb.Close(); err != nil {
			return 0, 0, err
		}
		began = time.Now()
		process, err := boxes[i*len(boxes)/tries].Start(ctx, sandbox.Command{Args: []string{"true"}})
		if err == nil {
			_, err = process.Wait(ctx)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("run true: %w", err)
		}
		execs = append(execs, time.Since(began))
	}
	return median(opens, milliseconds), median(execs, milliseconds), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func closeAll(boxes []sandbox.Sandbox) error {
	var wait sync.WaitGroup
	errs := make([]error, len(boxes))
	for i, sb := range boxes {
		wait.Go(func() { errs[i] = sb.Close() })
	}
	wait.Wait()
	return errors.Join(errs...)
}
