package modal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// image is one of the registry, or what was sealed.
type image struct {
	reference string
	built     bool
	sealed    []byte // nil is nothing beside what every machine has
}

// answer is what a request that may be repeated is answered with.
type answer struct {
	done  chan struct{}
	reply *pb.SandboxCreateV2Response
	err   error
}

// AuthTokenGet exchanges the credentials for a token.
func (s *Server) AuthTokenGet(context.Context, *pb.AuthTokenGetRequest) (*pb.AuthTokenGetResponse, error) {
	return pb.AuthTokenGetResponse_builder{Token: s.token("account")}.Build(), nil
}

// EnvironmentGetOrCreate describes an environment.
func (s *Server) EnvironmentGetOrCreate(_ context.Context, r *pb.EnvironmentGetOrCreateRequest) (*pb.EnvironmentGetOrCreateResponse, error) {
	if err := check(r, "", "deployment_name"); err != nil {
		return nil, err
	}
	return pb.EnvironmentGetOrCreateResponse_builder{EnvironmentId: "en-main", Metadata: pb.EnvironmentMetadata_builder{
		Name: "main", Settings: pb.EnvironmentSettings_builder{ImageBuilderVersion: "2025.06"}.Build(),
	}.Build()}.Build(), nil
}

// AppGetOrCreate finds an app.
func (s *Server) AppGetOrCreate(_ context.Context, r *pb.AppGetOrCreateRequest) (*pb.AppGetOrCreateResponse, error) {
	if err := check(r, "app_name", "environment_name object_creation_type"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	id := s.apps[r.GetAppName()]
	s.mu.Unlock()
	if id == "" {
		if r.GetObjectCreationType() != pb.ObjectCreationType_OBJECT_CREATION_TYPE_CREATE_IF_MISSING {
			return nil, status.Errorf(codes.NotFound, "App %s not found", r.GetAppName())
		}
		id = s.id("ap")
		s.mu.Lock()
		s.apps[r.GetAppName()] = id
		s.mu.Unlock()
	}
	return pb.AppGetOrCreateResponse_builder{AppId: id}.Build(), nil
}

// ImageGetOrCreate begins to build an image, which here is only ever one of the registry.
func (s *Server) ImageGetOrCreate(_ context.Context, r *pb.ImageGetOrCreateRequest) (*pb.ImageGetOrCreateResponse, error) {
	if err := check(r, "app_id image builder_version", ""); err != nil {
		return nil, err
	}
	if err := check(r.GetImage(), "dockerfile_commands", ""); err != nil {
		return nil, err
	}
	reference, ok := strings.CutPrefix(strings.Join(r.GetImage().GetDockerfileCommands(), "\n"), "FROM ")
	if !ok || strings.ContainsAny(reference, " \n") {
		return nil, status.Errorf(codes.InvalidArgument, "commands %q are not honoured", r.GetImage().GetDockerfileCommands())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, i := range s.images {
		if i.reference == reference && i.built {
			return pb.ImageGetOrCreateResponse_builder{ImageId: id, Result: success()}.Build(), nil
		}
	}
	s.next++
	id := "im-" + strings.Repeat("0", 10) + string(rune('a'+s.next%26)) + reference[:1]
	s.images[id] = &image{reference: reference}
	return pb.ImageGetOrCreateResponse_builder{ImageId: id}.Build(), nil
}

// ImageJoinStreaming waits for a build.
func (s *Server) ImageJoinStreaming(r *pb.ImageJoinStreamingRequest, stream grpc.ServerStreamingServer[pb.ImageJoinStreamingResponse]) error {
	s.mu.Lock()
	i := s.images[r.GetImageId()]
	result := success()
	if i != nil && i.reference != Image {
		delete(s.images, r.GetImageId())
		result = pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_FAILURE, Exception: "manifest unknown: " + i.reference}.Build()
	} else if i != nil {
		i.built = true
	}
	s.mu.Unlock()
	if i == nil {
		return status.Errorf(codes.NotFound, "Image %s not found", r.GetImageId())
	}
	return stream.Send(pb.ImageJoinStreamingResponse_builder{EntryId: "1", Result: result, Eof: true}.Build())
}

func success() *pb.GenericResult {
	return pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_SUCCESS}.Build()
}

// ImageFromId finds an image.
func (s *Server) ImageFromId(_ context.Context, r *pb.ImageFromIdRequest) (*pb.ImageFromIdResponse, error) {
	if err := check(r, "image_id", ""); err != nil {
		return nil, err
	}
	if _, err := s.image(r.GetImageId()); err != nil {
		return nil, err
	}
	return pb.ImageFromIdResponse_builder{ImageId: r.GetImageId()}.Build(), nil
}

// ImageDelete deletes an image. Machines that were made of it go on.
func (s *Server) ImageDelete(_ context.Context, r *pb.ImageDeleteRequest) (*emptypb.Empty, error) {
	if err := check(r, "image_id", ""); err != nil {
		return nil, err
	}
	if _, err := s.image(r.GetImageId()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.images, r.GetImageId())
	return &emptypb.Empty{}, nil
}

func (s *Server) image(id string) (*image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.images[id]; i != nil {
		return i, nil
	}
	return nil, status.Errorf(codes.NotFound, "Image %s not found", id)
}

// SandboxCreateV2 makes a machine, once for each key.
func (s *Server) SandboxCreateV2(ctx context.Context, r *pb.SandboxCreateV2Request) (*pb.SandboxCreateV2Response, error) {
	if err := errors.Join(
		check(r, "app_id definition", "tags"),
		check(r.GetDefinition(), "entrypoint_args image_id timeout_secs idle_timeout_secs network_access resources open_ports name", ""),
		check(r.GetDefinition().GetResources(), "memory_mb memory_mb_max gpu_config", "milli_cpu milli_cpu_max"),
		check(r.GetDefinition().GetNetworkAccess(), "network_access_type", ""),
	); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	key := strings.Join(headers.Get("x-idempotency-key"), "")
	if key == "" {
		return nil, status.Error(codes.InvalidArgument, "header x-idempotency-key is missing")
	}
	s.mu.Lock()
	a := s.answers[key]
	first := a == nil
	if first {
		a = &answer{done: make(chan struct{})}
		s.answers[key] = a
	}
	s.mu.Unlock()
	if first {
		// Like the service, it goes on when the client does not.
		a.reply, a.err = s.create(context.WithoutCancel(ctx), r)
		close(a.done)
	}
	select {
	case <-a.done:
		return a.reply, a.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// SandboxListV2 lists machines, the youngest first.
func (s *Server) SandboxListV2(_ context.Context, r *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
	if err := check(r, "app_id", "tags before_timestamp"); err != nil {
		return nil, err
	}
	var found []*pb.SandboxInfo
	for _, m := range s.running() {
		if m.app != r.GetAppId() || r.GetBeforeTimestamp() != 0 && m.created >= r.GetBeforeTimestamp() {
			continue
		}
		if slices.ContainsFunc(r.GetTags(), func(t *pb.SandboxTag) bool { return m.tags[t.GetTagName()] != t.GetTagValue() }) {
			continue
		}
		found = append(found, pb.SandboxInfo_builder{Id: m.id, CreatedAt: m.created, AppId: m.app}.Build())
	}
	slices.SortFunc(found, func(a, b *pb.SandboxInfo) int {
		return int(b.GetCreatedAt()*1e6) - int(a.GetCreatedAt()*1e6)
	})
	// A page.
	return pb.SandboxListResponse_builder{Sandboxes: found[:min(len(found), 2)]}.Build(), nil
}

// SandboxTerminateV2 ends a machine.
func (s *Server) SandboxTerminateV2(_ context.Context, r *pb.SandboxTerminateRequest) (*pb.SandboxTerminateResponse, error) {
	m, err := s.sandbox(r.GetSandboxId())
	if err != nil {
		return nil, err
	}
	existing := m.result()
	if existing == nil {
		if err := m.finish(pb.GenericResult_GENERIC_STATUS_TERMINATED); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	return pb.SandboxTerminateResponse_builder{ExistingResult: existing}.Build(), nil
}

// SandboxWaitV2 waits for the end of a machine.
func (s *Server) SandboxWaitV2(ctx context.Context, r *pb.SandboxWaitRequest) (*pb.SandboxWaitResponse, error) {
	m, err := s.sandbox(r.GetSandboxId())
	if err != nil {
		return nil, err
	}
	select {
	case <-m.ended:
	case <-time.After(time.Duration(float64(r.GetTimeout()) * float64(time.Second))):
	case <-ctx.Done():
	}
	return pb.SandboxWaitResponse_builder{Result: m.result()}.Build(), nil
}

// SandboxGetTaskIdV2 says which task a machine is.
func (s *Server) SandboxGetTaskIdV2(_ context.Context, r *pb.SandboxGetTaskIdRequest) (*pb.SandboxGetTaskIdResponse, error) {
	m, err := s.sandbox(r.GetSandboxId())
	if err != nil {
		return nil, err
	}
	return pb.SandboxGetTaskIdResponse_builder{TaskId: &m.task, TaskResult: m.result()}.Build(), nil
}

// SandboxGetCommandRouterAccess says where the commands of a machine are taken.
func (s *Server) SandboxGetCommandRouterAccess(_ context.Context, r *pb.SandboxGetCommandRouterAccessRequest) (*pb.SandboxGetCommandRouterAccessResponse, error) {
	m, err := s.sandbox(r.GetSandboxId())
	if err != nil {
		return nil, err
	}
	return pb.SandboxGetCommandRouterAccessResponse_builder{Jwt: s.token(m.task), Url: s.routerURL()}.Build(), nil
}

// The client insists on https and then does without, on loopback.
func (s *Server) routerURL() string { return "https://" + s.listener.Addr().String() }

func (s *Server) sandbox(id string) (*machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.sandboxes[id]; m != nil {
		return m, nil
	}
	return nil, status.Errorf(codes.NotFound, "Sandbox %s not found", id)
}
