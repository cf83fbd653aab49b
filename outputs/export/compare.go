package export

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"trajgen/outputs/media"
)

// FileDifference says how a file is not what it would be, were it written now.
type FileDifference struct {
	Path string
	How  string // "it is missing"
	Byte int64  // the first that differs; -1 when there is no such file, or one too many
}

// CompareRunFiles makes trajectories/, tool_calls/ and media/ of a run directory again and holds each byte against the files that
// are there. It reports each file that differs once, and writes nothing. It takes the time and the memory of RunFiles. The
// counts are those of the rows that the source gives.
func CompareRunFiles(ctx context.Context, source Source, runDir string, report func(FileDifference)) (trajectories, calls int64, err error) {
	held := func(table string) partFiles {
		return &comparedParts{dir: filepath.Join(runDir, table), prefix: partPrefix, suffix: parquetSuffix, report: report}
	}
	options := Options{Images: media.Open(media.Dir(runDir)).Read}.withDefaults()
	images := newMediaTable(options, filepath.Join(runDir, mediaName), func() (partFiles, error) { return held(mediaName), nil })
	tables, err := newParquetSink(held("trajectories"), held("tool_calls"), images, options)
	if err != nil {
		return 0, 0, err
	}
	result, err := Write(ctx, source, &Sink{target: tables, path: runDir, imaging: named, nests: true})
	for _, file := range result.Files {
		switch filepath.Base(filepath.Dir(file.Path)) {
		case "trajectories":
			trajectories += file.Rows
		case "tool_calls":
			calls += file.Rows
		}
	}
	return trajectories, calls, err
}

// comparedParts are part files that are there and are held against what is written.
type comparedParts struct {
	dir, prefix, suffix string
	report              func(FileDifference)
	done                []FileInfo
	file                *os.File // nil when it is missing, or its difference was reported
	in                  *bufio.Reader
	at                  int64
}

func (c *comparedParts) path() string { return partName(c.dir, c.prefix, len(c.done), c.suffix) }

func (c *comparedParts) next() (w io.Writer, err error) {
	c.at = 0
	c.file, err = os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		c.file = nil
		c.report(FileDifference{c.path(), "it is missing", -1})
		return c, nil
	}
	c.in = bufio.NewReaderSize(c.file, 1<<18)
	return c, err
}

// Write compares. A difference ends the comparison of the file.
func (c *comparedParts) Write(p []byte) (int, error) {
	if c.file == nil {
		return len(p), nil
	}
	have := make([]byte, len(p))
	n, err := io.ReadFull(c.in, have)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, fmt.Errorf("compare %s: %w", c.path(), err)
	}
	if have = have[:n]; !bytes.Equal(have, p[:n]) {
		for n = 0; have[n] == p[n]; n++ {
		}
		return len(p), c.differ("it differs from byte %d on", c.at+int64(n))
	}
	c.at += int64(n)
	if n < len(p) {
		return len(p), c.differ("it ends at byte %d", c.at)
	}
	return len(p), nil
}

func (c *comparedParts) differ(how string, at int64) error {
	c.report(FileDifference{c.path(), fmt.Sprintf(how, at), at})
	return c.close()
}

func (c *comparedParts) finish(rows int64) (err error) {
	if c.file != nil {
		if _, err = c.in.ReadByte(); err == nil {
			err = c.differ("it goes on behind byte %d", c.at)
		} else if err == io.EOF {
			err = c.close()
		}
	}
	c.done = append(c.done, FileInfo{Path: c.path(), Rows: rows, Bytes: c.at})
	return err
}

// commit reports files that a reader of the table would take for a part of it.
func (c *comparedParts) commit() ([]FileInfo, error) {
	paths, err := filesIn(c.dir, c.suffix)
	for _, path := range paths {
		if !slices.ContainsFunc(c.done, func(f FileInfo) bool { return f.Path == path }) {
			c.report(FileDifference{path, "it is one file more", -1})
		}
	}
	return c.done, err
}

func (c *comparedParts) close() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}
