package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

// fill gives every field a value that is not zero, so that one that is forgotten on the way is missed.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(*time.Time); ok {
			*t = time.Unix(12345, 678)
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text\x00")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Int, reflect.Int64:
		v.SetInt(1 << 30)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(1 << (v.Type().Bits() - 1))
	case reflect.Interface: // a stream, or a snapshot
	default:
		panic("cannot fill a " + v.Type().String())
	}
}

func filled[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

// able is a scripted backend whose sandboxes can do all that any can.
type able struct {
	sandboxtest.Scripted
	specs     []sandbox.Spec
	snapshots []*sealed
	resized   []sandbox.TTY
	late      chan struct{} // when set, Open and Start succeed once it is closed, whatever becomes of their context
	processes []*process
}

func (a *able) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if a.late != nil {
		<-a.late
		ctx = context.WithoutCancel(ctx)
	}
	a.specs = append(a.specs, spec)
	sb, err := a.Scripted.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &ableBox{sb, a}, nil
}

func (a *able) Guarantees() sandbox.Guarantees { return filled[sandbox.Guarantees]() }

type ableBox struct {
	sandbox.Sandbox
	backend *able
}

func (b *ableBox) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if b.backend.late != nil {
		<-b.backend.late
		ctx = context.WithoutCancel(ctx)
	}
	p, err := b.Sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	b.backend.processes = append(b.backend.processes, &process{Process: p, backend: b.backend})
	return b.backend.processes[len(b.backend.processes)-1], nil
}

func (b *ableBox) Snapshot(context.Context) (sandbox.Snapshot, error) {
	b.backend.snapshots = append(b.backend.snapshots, &sealed{})
	return b.backend.snapshots[len(b.backend.snapshots)-1], nil
}

func (b *ableBox) Connections() []sandbox.Connection { return filled[[]sandbox.Connection]() }

type process struct {
	sandbox.Process
	backend *able
}

func (p *process) Resize(_ context.Context, size sandbox.TTY) error {
	p.backend.resized = append(p.backend.resized, size)
	return nil
}

type sealed struct{ closed bool }

func (s *sealed) Close() error {
	s.closed = true
	return nil
}

// TestEverythingTravels compares what one end is asked with what the other was, every field of it.
func TestEverythingTravels(t *testing.T) {
	want := filled[sandbox.Exit]()
	backend := &able{}
	backend.Command = func(context.Context, *sandboxtest.ScriptedSandbox, sandbox.Command) (sandbox.Exit, error) {
		return want, nil
	}
	client := serve(t, backend, relay.Options{})
	guarantees := filled[sandbox.Guarantees]()
	guarantees.StoredImages = false // the store is on this machine, and the backend is not
	if diff := cmp.Diff(guarantees, client.Guarantees()); diff != "" {
		t.Errorf("guarantees (-want +got):\n%s", diff)
	}
	spec := filled[sandbox.Spec]()
	sb, err := client.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, backend.specs[0]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(backend.Opened()[0].Layout(), sb.Layout()); diff != "" {
		t.Errorf("layout (-want +got):\n%s", diff)
	}
	cmd := filled[sandbox.Command]()
	cmd.Socket = false // the scripted sandbox has none
	p, err := sb.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	got := backend.Opened()[0].Commands()[0]
	got.Stdin, got.Stdout, got.Stderr = nil, nil, nil
	if diff := cmp.Diff(cmd, got); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if p.PID() != backend.processes[0].PID() {
		t.Errorf("process number: got %d, want %d", p.PID(), backend.processes[0].PID())
	}
	size := filled[sandbox.TTY]()
	if err := p.(sandbox.Terminal).Resize(t.Context(), size); err != nil || len(backend.resized) != 1 || backend.resized[0] != size {
		t.Errorf("resize: got %v, %v, want %v", backend.resized, err, size)
	}
	if exit, err := p.Wait(t.Context()); err != nil || !cmp.Equal(exit, want) {
		t.Errorf("exit: got %+v, %v, want %+v", exit, err, want)
	}
	snapshot, err := sb.(sandbox.Snapshotter).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Open(t.Context(), sandbox.Spec{ID: "fork", From: snapshot}); err != nil || backend.specs[1].From != sandbox.Snapshot(backend.snapshots[0]) {
		t.Errorf("fork: got %v, %v", backend.specs[1].From, err)
	}
	if _, err := client.Open(t.Context(), sandbox.Spec{ID: "alien", From: &sealed{}}); err == nil {
		t.Error("a snapshot of another backend was taken")
	}
	if err := errors.Join(snapshot.Close(), snapshot.Close()); err != nil || !backend.snapshots[0].closed {
		t.Errorf("close the snapshot: closed %v, %v", backend.snapshots[0].closed, err)
	}
	if _, err := client.Open(t.Context(), sandbox.Spec{ID: "late", From: snapshot}); err == nil {
		t.Error("a closed snapshot was forked")
	}
	for range 2 {
		if diff := cmp.Diff(filled[[]sandbox.Connection](), sb.(sandbox.Traffic).Connections()); diff != "" {
			t.Errorf("connections (-want +got):\n%s", diff)
		}
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestErrorsTravel asks for errors that callers look into.
func TestErrorsTravel(t *testing.T) {
	known := []error{
		sandbox.ErrGone, sandbox.ErrBusy, sandbox.ErrNotRegular, sandbox.ErrNotFound, fs.ErrNotExist, fs.ErrExist, fs.ErrPermission,
		fs.ErrInvalid, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOSPC, syscall.ELOOP,
	}
	for _, give := range []error{
		errors.New("plain"), sandbox.ErrGone, syscall.ENOSPC, fmt.Errorf("x: %w: %w", sandbox.ErrNotFound, syscall.EACCES),
		&fs.PathError{Op: "read", Path: "a\nb", Err: syscall.ENOTDIR}, &fs.PathError{Op: "stat", Path: "p", Err: fs.ErrPermission},
		&fs.PathError{Op: "read", Path: "p", Err: sandbox.ErrNotRegular}, &fs.PathError{Op: "write", Path: "p", Err: errors.New("odd")},
		fmt.Errorf("around: %w", &fs.PathError{Op: "chdir", Path: "p", Err: syscall.ENOENT}),
		errors.Join(sandbox.ErrBusy, syscall.Errno(4000)),
	} {
		backend := &sandboxtest.Scripted{OpenErr: give}
		_, got := serve(t, backend, relay.Options{}).Open(t.Context(), sandbox.Spec{ID: "x"})
		if got == nil || got.Error() != give.Error() {
			t.Errorf("got %v, want %v", got, give)
			continue
		}
		for _, k := range known {
			if errors.Is(got, k) != errors.Is(give, k) {
				t.Errorf("%v is %v: got %v, want %v", give, k, errors.Is(got, k), errors.Is(give, k))
			}
		}
		wantPath, wanted := errors.AsType[*fs.PathError](give)
		gotPath, ok := errors.AsType[*fs.PathError](got)
		if ok != wanted || ok && (gotPath.Op != wantPath.Op || gotPath.Path != wantPath.Path) {
			t.Errorf("%v as a PathError: got %+v, want %+v", give, gotPath, wantPath)
		}
	}
	_, got := serve(t, &sandboxtest.Scripted{OpenErr: errors.New(strings.Repeat("long ", 1<<20))}, relay.Options{}).Open(t.Context(), sandbox.Spec{ID: "x"})
	if got == nil || len(got.Error()) > 10_000 {
		t.Errorf("a long error: got %d bytes", len(got.Error()))
	}
}

// TestOptions gives the backend another name and other guarantees.
func TestOptions(t *testing.T) {
	client := serve(t, &sandboxtest.Scripted{}, relay.Options{Name: "docker", Override: func(g *sandbox.Guarantees) { g.Level = sandbox.LevelUser }})
	if g := client.Guarantees(); g.Backend != "docker" || g.Level != sandbox.LevelUser {
		t.Errorf("got %+v", g)
	}
}

// TestLateSuccess gives up an opening and a start that succeed all the same: nothing may stay.
func TestLateSuccess(t *testing.T) {
	cause := errors.New("no longer wanted")
	backend := &able{}
	backend.Command = func(ctx context.Context, _ *sandboxtest.ScriptedSandbox, _ sandbox.Command) (sandbox.Exit, error) {
		<-ctx.Done()
		return sandbox.Exit{}, nil
	}
	client := serve(t, backend, relay.Options{})
	sb := box(t, client)
	backend.late = make(chan struct{})
	for what, ask := range map[string]func(context.Context) error{
		"open": func(ctx context.Context) error {
			_, err := client.Open(ctx, sandbox.Spec{ID: "late"})
			return err
		},
		"start": func(ctx context.Context) error {
			_, err := sb.Start(ctx, sandbox.Command{Args: []string{"x"}})
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
		if err := ask(ctx); !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want the cause", what, err)
		}
	}
	close(backend.late)
	sandboxtest.Eventually(t, 20*time.Second, "the late sandbox is closed", func() bool {
		opened := backend.Opened()
		return len(opened) == 2 && opened[1].Closed()
	})
	sandboxtest.Eventually(t, 20*time.Second, "the late command is killed", func() bool {
		opened := backend.Opened()
		if len(opened[0].Commands()) != 1 {
			return false
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		exit, err := backend.processes[0].Wait(ctx)
		return err == nil && exit.Signal == 9
	})
}
