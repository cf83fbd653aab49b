package modal_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"trajgen/sandbox"
)

// fileTools is the program that clients run to reach files.
const fileTools = "/__modal/.bin/modal-sandbox-fs-tools"

// router takes commands.
type router struct {
	pb.UnimplementedTaskCommandRouterServer
	server *Server
}

// machine is that of a task, if the caller may speak to it.
func (r *router) machine(ctx context.Context, task string) (*machine, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	if strings.Join(headers.Get("authorization"), "") != "Bearer "+r.server.token(task) {
		return nil, status.Error(codes.Unauthenticated, "the token is for another task")
	}
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	for _, m := range r.server.sandboxes {
		if m.task == task {
			return m, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "Task %s not found", task)
}

func (r *router) exec(ctx context.Context, task, id string) (*exec, error) {
	m, err := r.machine(ctx, task)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := m.execs[id]; {
	case e == nil:
		return nil, status.Errorf(codes.NotFound, "Exec %s not found", id)
	case m.outcome != nil:
		return nil, status.Errorf(codes.NotFound, "Task %s has ended", task)
	default:
		return e, nil
	}
}

// TaskExecStart starts a command, once for each id.
func (r *router) TaskExecStart(ctx context.Context, q *pb.TaskExecStartRequest) (*pb.TaskExecStartResponse, error) {
	if err := check(q, "task_id exec_id command_args stdout_config stderr_config", ""); err != nil {
		return nil, err
	}
	m, err := r.machine(ctx, q.GetTaskId())
	if err != nil {
		return nil, err
	}
	e := newExec(m)
	m.mu.Lock()
	finished, known := m.outcome != nil, m.execs[q.GetExecId()] != nil
	if !finished && !known {
		m.execs[q.GetExecId()] = e
	}
	m.mu.Unlock()
	if finished {
		return nil, status.Errorf(codes.NotFound, "Task %s has ended", q.GetTaskId())
	}
	if known {
		return &pb.TaskExecStartResponse{}, nil
	}
	m.use(1)
	if q.GetCommandArgs()[0] == fileTools {
		go e.fileTool(m, q.GetCommandArgs()[1:])
		return &pb.TaskExecStartResponse{}, nil
	}
	p, err := m.box.Start(ctx, sandbox.Command{Args: q.GetCommandArgs(), Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr})
	if err != nil {
		// As a shell says it.
		_, _ = e.stderr.Write([]byte(err.Error()))
		e.exited(sandbox.Exit{Code: 127})
		return &pb.TaskExecStartResponse{}, nil
	}
	go func() {
		x, err := p.Wait(context.WithoutCancel(ctx))
		if err != nil {
			e.lost()
			return
		}
		e.exited(x)
	}()
	return &pb.TaskExecStartResponse{}, nil
}

// fileTool writes a file as the service's program does.
func (e *exec) fileTool(m *machine, args []string) {
	var request struct{ WriteFile struct{ Path string } }
	d := json.NewDecoder(strings.NewReader(strings.Join(args, " ")))
	d.DisallowUnknownFields()
	err := d.Decode(&request)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(e.stdin)
	}
	if err == nil {
		err = m.box.Files().Write(context.Background(), sandbox.FileWrite{Path: request.WriteFile.Path, Data: data})
	}
	if err != nil {
		said, _ := json.Marshal(map[string]string{"error_kind": "Other", "message": err.Error()})
		_, _ = e.stderr.Write(said)
		e.exited(sandbox.Exit{Code: 1})
		return
	}
	e.exited(sandbox.Exit{})
}

// TaskExecStdinWrite passes on input from an offset.
func (r *router) TaskExecStdinWrite(ctx context.Context, q *pb.TaskExecStdinWriteRequest) (*pb.TaskExecStdinWriteResponse, error) {
	e, err := r.exec(ctx, q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	return &pb.TaskExecStdinWriteResponse{}, e.write(q.GetOffset(), q.GetData(), q.GetEof())
}

// TaskExecStdinStatus says how much input has come.
func (r *router) TaskExecStdinStatus(ctx context.Context, q *pb.TaskExecStdinStatusRequest) (*pb.TaskExecStdinStatusResponse, error) {
	e, err := r.exec(ctx, q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return pb.TaskExecStdinStatusResponse_builder{NumBytesWritten: e.written, Closed: e.eof}.Build(), nil
}

// TaskExecStdinWriteStream passes on input that comes in pieces.
func (r *router) TaskExecStdinWriteStream(stream grpc.ClientStreamingServer[pb.TaskExecStdinWriteStreamRequest, pb.TaskExecStdinWriteStreamResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return status.Error(codes.InvalidArgument, "the first message does not say what follows")
	}
	e, err := r.exec(stream.Context(), start.GetTaskId(), start.GetExecId())
	if err != nil {
		return err
	}
	for offset := start.GetOffset(); ; {
		q, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return status.Error(codes.Aborted, "it ended without saying so")
			}
			return err
		}
		if q.HasEnd() {
			if err := e.write(offset, nil, true); err != nil {
				return err
			}
			return stream.SendAndClose(&pb.TaskExecStdinWriteStreamResponse{})
		}
		if err := e.write(offset, q.GetData(), false); err != nil {
			return err
		}
		offset += uint64(len(q.GetData()))
	}
}

// TaskExecStdioRead sends output from an offset on.
func (r *router) TaskExecStdioRead(q *pb.TaskExecStdioReadRequest, stream grpc.ServerStreamingServer[pb.TaskExecStdioReadResponse]) error {
	e, err := r.exec(stream.Context(), q.GetTaskId(), q.GetExecId())
	if err != nil {
		return err
	}
	log := e.stdout
	switch q.GetFileDescriptor() {
	case pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT:
	case pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR:
		log = e.stderr
	default:
		return status.Error(codes.InvalidArgument, "field file_descriptor is not set")
	}
	for offset := int64(q.GetOffset()); ; {
		part, err := log.read(stream.Context(), offset)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := stream.Send(pb.TaskExecStdioReadResponse_builder{Data: part}.Build()); err != nil {
			return err
		}
		offset += int64(len(part))
	}
}

// TaskExecWait waits for the end of a command.
func (r *router) TaskExecWait(ctx context.Context, q *pb.TaskExecWaitRequest) (*pb.TaskExecWaitResponse, error) {
	e, err := r.exec(ctx, q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	select {
	case <-e.ended:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if e.gone {
		return nil, status.Errorf(codes.NotFound, "Task %s has ended", q.GetTaskId())
	}
	code, signal := int32(e.exit.Code), int32(e.exit.Signal)
	if signal != 0 {
		return pb.TaskExecWaitResponse_builder{Signal: &signal}.Build(), nil
	}
	return pb.TaskExecWaitResponse_builder{Code: &code}.Build(), nil
}

// TaskSnapshotFilesystem makes an image of a machine's files.
func (r *router) TaskSnapshotFilesystem(ctx context.Context, q *pb.TaskSnapshotFilesystemRequest) (*pb.TaskSnapshotFilesystemResponse, error) {
	if err := check(q, "task_id snapshot_id ttl_seconds", ""); err != nil {
		return nil, err
	}
	if q.GetTtlSeconds() < -1 || q.GetTtlSeconds() == 0 {
		return nil, status.Errorf(codes.InvalidArgument, "ttl_seconds is %d", q.GetTtlSeconds())
	}
	m, err := r.machine(ctx, q.GetTaskId())
	if err != nil {
		return nil, err
	}
	sealed, err := m.seal(ctx)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	id := r.server.id("im")
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.images[id] = &image{built: true, sealed: sealed}
	return pb.TaskSnapshotFilesystemResponse_builder{ImageId: id}.Build(), nil
}
