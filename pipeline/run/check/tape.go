package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"trajgen/pipeline/run"
	"trajgen/tools/web"
	"trajgen/tools/web/tape"
)

// TapeInfo is what a run recorded of the web, or what a recording answered in it.
type TapeInfo struct {
	Recording *tape.Info `json:"recording,omitempty"`
	Damage    string     `json:"damage,omitempty"`
	Replayed  string     `json:"replayed,omitempty"` // the run directory whose recording answered
	Coverage  []Coverage `json:"coverage,omitempty"`
}

// Taped looks into a run.
func Taped(ctx context.Context, dir string) (info TapeInfo, err error) {
	m, err := run.ReadManifest(dir)
	if err != nil {
		return info, err
	}
	if m.RunFile.Web.Mode == web.Replay {
		info.Replayed = m.RunFile.Web.Recording
		info.Coverage, err = Covered(ctx, dir)
		return info, err
	}
	recording, err := Recording(dir)
	if err != nil {
		return info, err
	}
	defer recording.Close()
	if err := recording.Damage(); err != nil {
		info.Damage = err.Error()
	}
	has, err := recording.Info()
	info.Recording = &has
	return info, err
}

// Recording opens the recording that a run directory has.
func Recording(dir string) (*tape.Tape, error) {
	recording, err := tape.Open(web.RecordingDir(dir), tape.ReplayOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		err = run.AsMistake(fmt.Errorf("%s has no recording of the web: --web record makes one", dir))
	}
	return recording, err
}
