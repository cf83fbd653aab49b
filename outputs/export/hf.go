package export

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/parquet-go/parquet-go"

	"trajgen/outputs/log/disk"
	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

// The directories of an export to hf.
const hfTrajectories, hfCalls, hfMedia = "data", "tool_calls", "media"

var hfFormat = Format{
	imaging: named,
	nests:   true,
	Rows:    true,
	About:   "a Hugging Face dataset folder: Parquet files of both tables, and a card (README.md) that says what they are and how they were made",
	Folder:  true,
	Settings: map[string]Setting{
		"license": {
			About: "of the data, as the Hub names it, such as apache-2.0 (default: that of the dataset where it says one, else unknown)",
			form:  regexp.MustCompile(`^([a-z0-9][a-z0-9.-]{0,63})?$`), want: "an identifier of the Hub, such as apache-2.0, cc-by-4.0 or other",
		},
		"name": {About: "title of the card (default: the run's name)"},
		"split": {
			About: "what the rows are: train (default), test, validation, ...",
			form:  regexp.MustCompile(`^[A-Za-z0-9_]{0,64}$`), want: "letters, digits and _",
		},
	},
	open: openHF,
}

// hfSink writes Parquet files in a folder, names them when it knows how many there are, and puts a card beside them.
type hfSink struct {
	*folder
	tables  *parquetSink
	options Options
	split   string
	tally   *report.Builder
	made    hfMade
	notes   []string
}

func openHF(path string, options Options) (target, error) {
	s := &hfSink{options: options, split: cmp.Or(options.Set["split"], "train"), tally: report.New(report.Meta{}), made: newHFMade()}
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	s.folder = f
	s.tables, err = openParquetTables(filepath.Join(f.temporary, hfTrajectories), filepath.Join(f.temporary, hfCalls), filepath.Join(f.temporary, hfMedia), options)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return s, nil
}

func (s *hfSink) add(ep *episode.Episode) error {
	s.tally.Add(ep)
	s.made.add(ep)
	return s.tables.add(ep)
}

func (s *hfSink) finish() ([]FileInfo, error) {
	files, err := s.tables.finish()
	if err != nil {
		return nil, err
	}
	of := func(dir string) func(FileInfo) bool {
		return func(f FileInfo) bool { return filepath.Base(filepath.Dir(f.Path)) == dir }
	}
	calls, images := slices.IndexFunc(files, of(hfCalls)), slices.IndexFunc(files, of(hfMedia))
	if images < 0 {
		images = len(files)
	}
	ofTrajectories, err := s.rename(files[:calls], hfTrajectories)
	if err != nil {
		return nil, err
	}
	ofCalls, err := s.rename(files[calls:images], hfCalls)
	if err != nil {
		return nil, err
	}
	if _, err := s.rename(files[images:], hfMedia); err != nil {
		return nil, err
	}
	if err := s.create("README.md", 0, s.card(ofTrajectories, ofCalls)); err != nil {
		return nil, err
	}
	return s.commit()
}

// hfSize is how large a table is.
type hfSize struct{ rows, files, bytes, unpacked int64 }

// rename gives the parts of a table the names by which the Hub finds a split.
func (s *hfSink) rename(parts []FileInfo, dir string) (size hfSize, err error) {
	for n, part := range parts {
		unpacked, err := unpackedBytes(part.Path)
		if err != nil {
			return size, err
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%05d-of-%05d.parquet", s.split, n, len(parts)))
		if err := os.Rename(part.Path, filepath.Join(s.temporary, name)); err != nil {
			return size, fmt.Errorf("export to %s: %w", s.path, disk.Explain(s.path, err))
		}
		s.files = append(s.files, FileInfo{filepath.Join(s.path, name), part.Rows, part.Bytes})
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

func (s *hfSink) close() error { return errors.Join(s.tables.close(), s.folder.close()) }

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
