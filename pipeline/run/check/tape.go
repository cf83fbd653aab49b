package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

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

// Text is the recording by host, or what it answered by host and provider.
func (info TapeInfo) Text() string {
	var text strings.Builder
	if r := info.Recording; r != nil {
		fmt.Fprintf(&text, "%d exchanges of %d requests, %d without an answer; %.1f MB, %.1f MB on the disk\ndigest: %s\n",
			r.Exchanges, r.Requests, r.Failed, float64(r.Bytes)/1e6, float64(r.Disk)/1e6, r.Digest)
		if info.Damage != "" {
			fmt.Fprintf(&text, "damaged: %s\n", info.Damage)
		}
		fmt.Fprintf(&text, "\n%9s %8s %6s %9s  %s\n", "exchanges", "requests", "failed", "kB", "host")
		for _, h := range r.Hosts {
			fmt.Fprintf(&text, "%9d %8d %6d %9.1f  %s\n", h.Exchanges, h.Requests, h.Failed, float64(h.Bytes)/1e3, h.Host)
		}
		return text.String()
	}
	fmt.Fprintf(&text, "answered from the recording of %s\n\n%7s %7s %7s  %s\n", info.Replayed, "hits", "loose", "misses", "host or provider")
	for _, c := range info.Coverage {
		fmt.Fprintf(&text, "%7d %7d %7d  %s\n", c.Hits, c.Loose, c.Misses, c.Of)
	}
	return text.String()
}

// Recording opens the recording that a run directory has.
func Recording(dir string) (*tape.Tape, error) {
	recording, err := tape.Open(web.RecordingDir(dir), tape.ReplayOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		err = run.AsMistake(fmt.Errorf("%s has no recording of the web: --web record makes one", dir))
	}
	return recording, err
}
