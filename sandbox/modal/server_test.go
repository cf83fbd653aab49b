package modal_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented/rentedtest"
)

// The credentials that the server knows.
const (
	TokenID     = "ak-stand-in"
	TokenSecret = "as-stand-in"
)

// Image is the one image that its registry has.
const Image = "debian:stand-in"

// maxMessage is what the service takes in one message.
const maxMessage = 100 << 20

// Server speaks Modal's protocol, as far as a client of sandboxes does.
//
// Its machines are sandboxes of another backend, so what a client asks of them really happens. It is strict: it refuses a request
// without credentials, with a field that it does not know how to honour, or without one that the service needs.
type Server struct {
	pb.UnimplementedModalClientServer

	// URL is its address, for the setting server_url.
	URL string

	machines sandbox.Backend
	listener net.Listener
	grpc     *grpc.Server
	router   router
	serving  sync.WaitGroup

	mu        sync.Mutex // guards what follows
	apps      map[string]string
	images    map[string]*image
	sandboxes map[string]*machine // by id, finished ones too
	answers   map[string]*answer  // of requests that may be repeated, by key
	faults    map[string]*fault   // by method
	calls     map[string]int      // by method
	next      int
}

// fault is what a method does instead of its work.
type fault struct {
	err   error
	times int
	after bool // the work is done, and its answer lost
}

// Start starts a server whose machines are native sandboxes, until the test ends, and returns the options of its user.
func Start(t testing.TB) (*Server, sandbox.Options, error) {
	t.Helper()
	return rentedtest.Start(t, New)
}

// New starts a server on loopback, which makes machines of a backend.
func New(machines sandbox.Backend) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), machines: machines, listener: listener,
		apps: map[string]string{}, images: map[string]*image{}, sandboxes: map[string]*machine{},
		answers: map[string]*answer{}, faults: map[string]*fault{}, calls: map[string]int{},
	}
	s.router.server = s
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			f, err := s.enter(ctx, info.FullMethod, false)
			if err != nil {
				return nil, err
			}
			if unknown(req.(proto.Message).ProtoReflect()) {
				return nil, status.Errorf(codes.InvalidArgument, "%s: a field that is not known", info.FullMethod)
			}
			reply, err := handler(ctx, req)
			if f != nil && err == nil {
				return nil, f.err
			}
			return reply, err
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if _, err := s.enter(stream.Context(), info.FullMethod, true); err != nil {
				return err
			}
			return handler(srv, stream)
		}),
	)
	pb.RegisterModalClientServer(s.grpc, s)
	pb.RegisterTaskCommandRouterServer(s.grpc, &s.router)
	s.serving.Go(func() { _ = s.grpc.Serve(listener) })
	return s, nil
}

// Settings are those of a user of the server.
func (s *Server) Settings() map[string]string {
	return map[string]string{"token_id": TokenID, "token_secret": TokenSecret, "server_url": s.URL, "image": Image, "arch": runtime.GOARCH}
}

// Fail makes the next calls of a method, named without its service, fail; after is after they did their work.
func (s *Server) Fail(method string, err error, times int, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = &fault{err: err, times: times, after: after}
}

// Calls says how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Running says how many machines there are.
func (s *Server) Running() int { return len(s.running()) }

// Images says how many images there are, beside those of the registry.
func (s *Server) Images() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, i := range s.images {
		if i.reference == "" {
			n++
		}
	}
	return n
}

// Lose ends all machines as the service may do at any time.
func (s *Server) Lose() {
	for _, m := range s.running() {
		m.finish(pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE)
	}
}

func (s *Server) running() []*machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	var running []*machine
	for _, m := range s.sandboxes {
		if m.result() == nil {
			running = append(running, m)
		}
	}
	return running
}

// Close ends all machines and the server.
func (s *Server) Close() error {
	var errs []error
	for _, m := range s.running() {
		errs = append(errs, m.finish(pb.GenericResult_GENERIC_STATUS_TERMINATED))
	}
	s.grpc.Stop()
	s.serving.Wait()
	return errors.Join(errs...)
}

const (
	clientService = "/modal.client.ModalClient/"
	routerService = "/modal.task_command_router.TaskCommandRouter/"
)

// enter checks what every request needs. It returns the fault that is to follow the work.
func (s *Server) enter(ctx context.Context, full string, stream bool) (*fault, error) {
	method := full[strings.LastIndexByte(full, '/')+1:]
	headers, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	s.calls[method]++
	f := s.faults[method]
	if f != nil {
		if f.times--; f.times < 0 {
			f = nil
		}
	}
	s.mu.Unlock()
	if f != nil && !f.after {
		return nil, f.err
	}
	// A request for a token, on the way of another request, has what that has, too.
	value := func(name string) string { return strings.Join(slices.Compact(headers.Get(name)), ",") }
	switch {
	case strings.HasPrefix(full, clientService):
		for _, name := range []string{"x-modal-client-type", "x-modal-client-version", "x-modal-host"} {
			if value(name) == "" {
				return nil, status.Errorf(codes.InvalidArgument, "header %s is missing", name)
			}
		}
		if value("x-modal-token-id") != TokenID || value("x-modal-token-secret") != TokenSecret {
			return nil, status.Error(codes.Unauthenticated, "Token ID is malformed or the token is unknown")
		}
		// The client sends none for streams.
		if !stream && method != "AuthTokenGet" && value("x-modal-auth-token") != s.token("account") {
			return nil, status.Error(codes.Unauthenticated, "auth token is missing or wrong")
		}
	case strings.HasPrefix(full, routerService):
		if !strings.HasPrefix(value("authorization"), "Bearer ") {
			return nil, status.Error(codes.Unauthenticated, "no bearer token")
		}
	default:
		return nil, status.Errorf(codes.Unimplemented, "service of %s", full)
	}
	return f, nil
}

// token is a signed token, as far as its holder can see.
func (s *Server) token(subject string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, subject, expiry)) + "." + encode([]byte(subject))
}

// expiry is far away.
var expiry = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

func (s *Server) id(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return fmt.Sprintf("%s-%08d", prefix, s.next)
}

// unknown says whether a message has fields that its type does not.
func unknown(m protoreflect.Message) bool {
	found := len(m.GetUnknown()) > 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				found = found || unknown(v.List().Get(i).Message())
			}
		default:
			found = found || unknown(v.Message())
		}
		return !found
	})
	return found
}

// check refuses a message that has other fields than need and may, or that lacks one of need.
func check(m proto.Message, need, may string) error {
	r := m.ProtoReflect()
	known := strings.Fields(need + " " + may)
	var errs []error
	r.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		for _, name := range known {
			if string(f.Name()) == name {
				return true
			}
		}
		errs = append(errs, fmt.Errorf("field %s is not honoured", f.Name()))
		return true
	})
	for _, name := range strings.Fields(need) {
		f := r.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil || !r.Has(f) {
			errs = append(errs, fmt.Errorf("field %s is not set", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return status.Errorf(codes.InvalidArgument, "%s: %v", r.Descriptor().Name(), err)
	}
	return nil
}

// Forget deletes all images that were sealed, as the service does after their time.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.images, func(_ string, i *image) bool { return i.reference == "" })
}
