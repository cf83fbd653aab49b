package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

// writeClasses are those of calls that write in the sandbox.
var writeClasses = []*class{
	{name: "partial_write", says: "success, but a part of what was written is there", times: 1, applies: writes, plant: plantPart},
	{name: "duplicated", says: "the result, but the call has run twice", times: 1, applies: changesSandbox, plant: plantTwice},
}

// writes reports whether the call writes files of the sandbox.
func writes(t *registry.Tool, call *episode.ToolCall) bool {
	return !outside(t) && t.Access != nil && len(t.Access(call.Arguments).Writes) > 0
}

// changesSandbox reports whether the call may change something in the sandbox, and nothing beyond.
func changesSandbox(t *registry.Tool, call *episode.ToolCall) bool {
	return !outside(t) && !t.NoSandbox && (t.Access == nil || writes(t, call))
}

const wholeFile = math.MaxInt32

// plantPart has the call write, and cuts what it added to its files. With share 0 they are what they were.
func plantPart(s *strike) {
	share := 0.5
	if s.settings.Share != nil {
		share = *s.settings.Share
	}
	names := s.call.Tool.Access(s.call.Trace.Arguments).Writes
	s.Around = func(ctx context.Context, env *registry.Env, run func(context.Context) (string, error)) (string, error) {
		box, err := env.Sandbox(ctx)
		if err != nil {
			return "", err
		}
		files, before := box.Files(), make([][]byte, len(names))
		for i, name := range names {
			if !path.IsAbs(name) {
				names[i] = path.Join(box.Layout().Workdir, name)
			}
			if before[i], _, err = files.Read(ctx, names[i], 0, wholeFile); errors.Is(err, sandbox.ErrGone) {
				return "", err
			}
		}
		text, err := run(ctx)
		if err != nil {
			return text, err
		}
		for i, name := range names {
			after, _, err := files.Read(ctx, name, 0, wholeFile)
			if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(after, before[i]) {
				continue // it wrote nothing there
			}
			switch left := after[:int(share*float64(len(after)))]; {
			case err != nil:
			case share > 0:
				err = files.Write(ctx, sandbox.FileWrite{Path: name, Data: left})
			case before[i] == nil:
				err = files.Remove(ctx, name)
			default:
				err = files.Write(ctx, sandbox.FileWrite{Path: name, Data: before[i]})
			}
			if err != nil {
				return "", fmt.Errorf("take back what the call wrote: %w", err)
			}
			s.Planted.Effect = episode.EffectPart
		}
		return text, nil
	}
}

// plantTwice runs the call two times. The model sees the first result.
func plantTwice(s *strike) {
	s.Around = func(ctx context.Context, _ *registry.Env, run func(context.Context) (string, error)) (string, error) {
		text, err := run(ctx)
		if err != nil {
			return text, err
		}
		s.Planted.Effect = episode.EffectTwice
		_, _ = run(ctx) // what is broken or lost, the registry knows
		return text, nil
	}
}
