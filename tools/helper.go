package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

// askHelper runs a helper inside the sandbox, with the question on its standard input and the answer on its standard output,
// both as JSON.
func askHelper(ctx context.Context, box sandbox.Sandbox, helper, doing string, timeout time.Duration, question, answer any) error {
	input, err := json.Marshal(question)
	if err != nil {
		return err
	}
	var stdout bytes.Buffer
	stderr := newCapture(2000, "chars")
	cmd := sandbox.Command{
		Helper: helper, Dir: box.Layout().Workdir, Stdin: bytes.NewReader(input), Stdout: &stdout, Stderr: stderr,
	}
	exit, stopped, err := run(ctx, box, cmd, bounds{timeout: timeout}, nil)
	switch {
	case err != nil:
		return err
	case errors.Is(stopped, errTimedOut):
		return &registry.Failure{
			Class: "timeout", Status: episode.CallTimeout, Message: fmt.Sprintf("%s did not end within %s", doing, timeout),
		}
	case errors.Is(stopped, errFlood):
		return registry.Failf("too_large", "%s made more than %s bytes of results", doing, thousands(maxFlood))
	case stopped != nil:
		return stopped
	case exit.OOM || exit.Signal != 0:
		return registry.Failf("helper_died", "%s was killed (exit code %d), perhaps for lack of memory", doing, exit.Code)
	}
	if err := json.Unmarshal(stdout.Bytes(), answer); err != nil {
		return fmt.Errorf("%s (exit code %d): %s", doing, exit.Code, stderr.text())
	}
	return nil
}
