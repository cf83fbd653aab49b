package modal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	modal "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	defaultServer = "https://api.modal.com:443"
	// connectTime bounds the first request to the service.
	connectTime = time.Minute
	// throttleTime is how long one request waits for a throttle of the service.
	throttleTime = 2 * time.Minute
)

// newClient makes a client from the settings only.
func newClient(c config, logger *slog.Logger) (*modal.Client, error) {
	// The client prefers the environment to its parameters.
	if got := os.Getenv("MODAL_SERVER_URL"); got != "" && got != c.server {
		return nil, fmt.Errorf("MODAL_SERVER_URL is %q in the environment and the setting server_url is %q: let them be the same", got, c.server)
	}
	if got := os.Getenv("MODAL_SANDBOX_V2"); got != "" {
		return nil, fmt.Errorf("MODAL_SANDBOX_V2 is %q in the environment: unset it", got)
	}
	patience := throttleTime
	params := modal.ClientParams{
		TokenID: c.tokenID, TokenSecret: c.tokenSecret, Environment: c.environment, Logger: logger, MaxThrottleWait: &patience,
	}
	if err := configure(&params.Config, c.server); err != nil {
		return nil, err
	}
	return modal.NewClientWithOptions(&params)
}

// configure sets the client's only profile, so that a file in the user's home has no effect. The types of the field have no
// names outside of the client.
func configure[T any](field **T, server string) error {
	profile := cmp.Or(os.Getenv("MODAL_PROFILE"), "trajgen") // the one that the client looks for
	content, err := json.Marshal(map[string]map[string]any{profile: {"ServerURL": server, "SandboxV2": true, "Active": true}})
	if err != nil {
		return err
	}
	*field = new(T)
	return json.Unmarshal(content, *field)
}

// explain adds the kind of failure and what to do. It keeps the cause.
func explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if why := kind(err); why != "" {
		return fmt.Errorf("%s: %w", why, err)
	}
	return err
}

func kind(err error) string {
	if _, ok := errors.AsType[modal.ResourceExhaustedError](err); ok {
		return "Modal has no room for a machine now, or the workspace's quota is used up"
	}
	if _, ok := errors.AsType[modal.RemoteError](err); ok {
		return "Modal could not build the image"
	}
	if notFound(err) {
		return "Modal does not know this"
	}
	s, ok := status.FromError(err)
	if !ok {
		return ""
	}
	switch s.Code() {
	case codes.Unauthenticated:
		return "Modal refuses the credentials in MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
	case codes.PermissionDenied:
		return "Modal does not let these credentials do this"
	case codes.ResourceExhausted:
		if throttled(s) {
			return "Modal limits the rate of requests, and went on doing so for " + throttleTime.String()
		}
		return "Modal's quota for this workspace is used up"
	case codes.InvalidArgument, codes.FailedPrecondition:
		return "Modal refuses the request"
	case codes.Unavailable:
		return "Modal cannot be reached"
	}
	return ""
}

func throttled(s *status.Status) bool {
	for _, detail := range s.Details() {
		if _, ok := detail.(*pb.RPCRetryPolicy); ok {
			return true
		}
	}
	return false
}

func notFound(err error) bool {
	_, ok := errors.AsType[modal.NotFoundError](err)
	return ok || status.Code(err) == codes.NotFound
}
