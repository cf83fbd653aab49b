package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"trajgen/outputs/log/disk"
	"trajgen/outputs/report"
	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// The directories of an export to hf.
const hfTrajectories, hfCalls = "data", "tool_calls"

var hfFormat = Format{
	Rows:   true,
	About:  "a Hugging Face dataset folder: Parquet files of both tables, and a card (README.md) that says what they are and how they were made",
	Folder: true,
	Settings: map[string]string{
		"license": "of the data, as the Hub names it, such as apache-2.0 (default: that of the dataset where it says one, else unknown)",
		"name":    "title of the card (default: the run's name)",
		"split":   "what the rows are: train (default), test, validation, ...",
	},
	open: openHF,
}

// hfSink writes Parquet files in a folder, names them when it knows how many there are, and puts a card beside them.
type hfSink struct {
	*folder
	options      Options
	split        string
	trajectories *parquetTable[rows.Trajectory]
	calls        *parquetTable[rows.ToolCall]
	tally        *report.Builder
	made         hfMade
	notes        []string
	failed       error
}

var (
	hfSplit   = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
	hfLicense = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,63}$`)
)

func openHF(path string, options Options) (Sink, error) {
	s := &hfSink{options: options, split: options.Set["split"], tally: report.New(report.Meta{}), made: newHFMade()}
	if s.split == "" {
		s.split = "train"
	}
	var errs []error
	if !hfSplit.MatchString(s.split) {
		errs = append(errs, fmt.Errorf("split=%q (want letters, digits and _)", s.split))
	}
	if license := options.Set["license"]; license != "" && !hfLicense.MatchString(license) {
		errs = append(errs, fmt.Errorf("license=%q (want an identifier of the Hub, such as apache-2.0, cc-by-4.0 or other)", license))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	s.folder = f
	if s.trajectories, err = openTable[rows.Trajectory](filepath.Join(f.temporary, hfTrajectories), rows.Trajectories, "episode_id", options); err == nil {
		s.calls, err = openTable[rows.ToolCall](filepath.Join(f.temporary, hfCalls), rows.ToolCalls, "episode_id", options)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *hfSink) Write(ctx context.Context, ep *episode.Episode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.failed == nil {
		if s.failed = writeTables(s.trajectories, s.calls, ep); s.failed == nil {
			s.tally.Add(ep)
			s.made.add(ep)
		}
	}
	return s.failed
}

func (s *hfSink) Commit() ([]FileInfo, error) {
	if s.failed != nil {
		return nil, fmt.Errorf("commit %s: it is not complete: %w", s.path, s.failed)
	}
	if s.committed {
		return s.commit() // which says so
	}
	trajectories, err := commitHF(s, s.trajectories, hfTrajectories)
	if err != nil {
		return nil, err
	}
	calls, err := commitHF(s, s.calls, hfCalls)
	if err != nil {
		return nil, err
	}
	card := s.card(trajectories, calls)
	if err := s.create("README.md", 0, func(w io.Writer) error { _, err := w.Write(card); return err }); err != nil {
		return nil, err
	}
	return s.commit()
}

// hfSize is how large a table is.
type hfSize struct{ rows, files, bytes, unpacked int64 }

// commitHF completes a table and gives its parts the names by which the Hub finds a split.
func commitHF[Row any](s *hfSink, table *parquetTable[Row], dir string) (size hfSize, err error) {
	if err := table.finish(); err != nil {
		return size, err
	}
	parts, err := table.parts.commit()
	if err != nil {
		return size, err
	}
	for n, part := range parts {
		unpacked, err := unpackedBytes(part.Path)
		if err != nil {
			return size, err
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%05d-of-%05d.parquet", s.split, n, len(parts)))
		if err := os.Rename(part.Path, filepath.Join(s.temporary, name)); err != nil {
			return size, fmt.Errorf("export to %s: %w", s.path, disk.Explain(s.path, err))
		}
		if err := s.wrote(name, part.Rows); err != nil {
			return size, err
		}
		size = hfSize{size.rows + part.Rows, size.files + 1, size.bytes + part.Bytes, size.unpacked + unpacked}
	}
	return size, nil
}

// unpackedBytes is how large the columns of a file are without compression.
func unpackedBytes(path string) (n int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, fmt.Errorf("read back %s: %w", path, err)
	}
	for _, group := range file.Metadata().RowGroups {
		n += group.TotalByteSize
	}
	return n, nil
}

func (s *hfSink) Notes() []string { return s.notes }

func (s *hfSink) Close() error {
	var errs []error
	if s.trajectories != nil {
		errs = append(errs, s.trajectories.close())
	}
	if s.calls != nil {
		errs = append(errs, s.calls.close())
	}
	return errors.Join(append(errs, s.close())...)
}

// sizeCategory is the Hub's word for so many rows.
func sizeCategory(n int64) string {
	names := []string{"1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"}
	below := int64(1000)
	for i, name := range names {
		if n < below {
			if i == 0 {
				return "n<1K"
			}
			return names[i-1] + "<n<" + name
		}
		below *= 10
	}
	return "n>1T"
}

func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
