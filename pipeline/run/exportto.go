package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"trajgen/outputs/export"
	"trajgen/pipeline/where"
)

// exportTo writes an export to a new file, or to stdout if out is -, an existing device or a pipe.
func exportTo(ctx context.Context, stdout io.Writer, source export.Source, format, out string, options export.Options) (
	result export.Result, err error) {
	if at, err := filepath.EvalSymlinks(out); err == nil {
		out = at
	}
	info, err := os.Stat(out)
	through := out == "-" || err == nil && !info.IsDir() && !info.Mode().IsRegular()
	if !through {
		if err := MakePlace(out); err != nil {
			return result, AsMistake(fmt.Errorf("export to %s: %w", out, err))
		}
	}
	target := out
	if through {
		if export.Formats()[format].Folder {
			return result, AsMistake(fmt.Errorf("the format %s is a directory of files and cannot go to %s", format, out))
		}
		dir, err := os.MkdirTemp("", "trajgen-export-")
		if err != nil {
			return result, fmt.Errorf("export to %s: %w", out, err)
		}
		defer os.RemoveAll(dir)
		target = filepath.Join(dir, "export")
	}
	sink, err := export.Open(format, target, options)
	if err != nil {
		return result, AsMistake(err)
	}
	defer SetGC(TightGC)()
	result, err = export.Write(ctx, source, sink)
	if errors.Is(err, where.ErrUnknown) {
		err = AsMistake(err)
	}
	if err != nil || !through {
		return result, err
	}
	result.Files = nil
	return result, pour(target, out, stdout)
}

// pour copies a file to stdout, a device or a pipe. It first unlinks the file, as the reader of a pipe may close it, which ends this
// process.
func pour(from, out string, stdout io.Writer) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.RemoveAll(filepath.Dir(from)); err != nil {
		return err
	}
	if out != "-" {
		target, err := os.OpenFile(out, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		defer target.Close()
		stdout = target
	}
	_, err = io.Copy(stdout, source)
	return err
}
