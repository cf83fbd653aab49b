package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/datasets"
	"trajgen/distributions"
	"trajgen/outputs/journal"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/model/record"
	"trajgen/tools/skills"
)

// OutDir is the run directory.
func (f *File) OutDir() string {
	if f.Out != "" {
		return f.Out
	}
	return filepath.Join("runs", f.Name)
}

// JournalDir is where a run directory keeps its journal.
func JournalDir(run string) string { return filepath.Join(run, "journal") }

// fresh refuses a directory that is not empty, except for the files of a run that died before it began.
func fresh(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open run directory: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "journal" && name != record.TapeName && name != "log.jsonl" && name != proofsFile && !strings.HasPrefix(name, disk.Temporary) {
			return fmt.Errorf("%s is not empty: --resume goes on with a run, another --out starts one", dir)
		}
	}
	return nil
}

// OpenFinished opens a run directory for reading.
func OpenFinished(dir string) (Manifest, *journal.Reader, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return m, nil, err
	}
	reader, err := journal.OpenReader(JournalDir(dir))
	return m, reader, err
}

// Resumed is the run file of a run directory, to go on with it.
func Resumed(dir string) (File, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return File{}, err
	}
	f := m.RunFile
	follow(&f, dir)
	f.Out = dir
	return f, nil
}

// follow finds files of a run that was started in another folder than this process, by where its run directory is now. A path
// stays as it is when nothing is there.
func follow(f *File, dir string) {
	full, err := filepath.Abs(dir)
	began, known := strings.CutSuffix(full, string(filepath.Separator)+filepath.Clean(f.OutDir()))
	here, cwdErr := os.Getwd()
	if errors.Join(err, cwdErr) != nil || !known || began == here {
		return
	}
	paths := []*string{
		&f.Dataset.Map, &f.Tools.Distribution, &f.Commands.Allow, &f.Tape.Replay, &f.Tape.Record, &f.Faults.Clean, &f.Faults.Recoverable, &f.Prompts.System, &f.Prompts.Ephemeral,
		&f.Prompts.Prefill, &f.Sandbox.ImageDir, &f.MCP.Lock,
	}
	for i := range f.Dataset.Path {
		paths = append(paths, &f.Dataset.Path[i])
	}
	for i := range f.Skills.Dirs {
		paths = append(paths, &f.Skills.Dirs[i])
	}
	for i := range f.MCP.Advisories { // a URL is not a file, and stays as it is
		paths = append(paths, &f.MCP.Advisories[i])
	}
	for _, plugin := range f.Tools.Plugins {
		for i := range plugin.Files {
			paths = append(paths, &plugin.Files[i])
		}
	}
	for _, server := range f.MCP.Servers {
		for i := range server.Files {
			paths = append(paths, &server.Files[i])
		}
	}
	names := slices.Concat([]string{"", skills.HubDir, datasets.Bundled, datasets.BundledResearch, datasets.BundledBrowser, datasets.BundledSkills, datasets.BundledHome}, datasets.Mappings(), distributions.Names())
	for _, path := range paths {
		if filepath.IsAbs(*path) || slices.Contains(names, *path) {
			continue
		}
		there := filepath.Join(began, *path)
		if found, err := filepath.Glob(there); err == nil && len(found) > 0 {
			*path = there
		}
	}
}

// MakePlace makes the directory for an export. It refuses a place where the export would replace a run's own files.
func MakePlace(out string) error {
	full, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	own := []string{"journal", "images", "trajectories", "tool_calls", "media", "run.json", "report.json", "report.md", SumsName, "log.jsonl", proofsFile}
	for dir, name := full, ""; ; dir, name = filepath.Dir(dir), filepath.Base(dir) {
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil && (name == "" || slices.Contains(own, name)) {
			return fmt.Errorf("%s is a run directory, whose files trajgen run and --resume write (want a place beside it, or a new name in it)", dir)
		}
		if dir == filepath.Dir(dir) {
			return os.MkdirAll(filepath.Dir(full), 0o755)
		}
	}
}
