package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"trajgen/outputs/export"
	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
)

// Exporting is an export of what a run or earlier exports have.
type Exporting struct {
	Run            string   // directory of the run whose journal is read, or
	From           []string // run directories and exports that are read instead
	To, Out        string   // the format, and the file or directory; - is stdout
	Set            []string // settings of the format, as NAME=VALUE
	Choice         export.Choice
	WithoutHarness bool // leave out what the harness said
	Partial        bool // an export of a run that has not played all of its episodes is what is wanted
	Options        export.Options
	// Watch, if set, takes how many episodes will be read, and returns what is told of each of them.
	Watch func(total int) func(*episode.Episode)

	notes []string // of the files that are read
	lacks string   // which episodes the run lacks; empty when it is complete or its plan is unknown
	close func() error
}

// Validate says what the flags of a command of that name lack.
func (x *Exporting) Validate(command string) (err error) {
	var errs []error
	if (x.Run == "") == (len(x.From) == 0) {
		errs = append(errs, fmt.Errorf("%s needs either --run RUN_DIRECTORY or --from PATH", command))
	}
	x.Options.Set, err = export.ParseSettings(x.Set)
	return errors.Join(append(errs, err)...)
}

// Write writes the export.
func (x *Exporting) Write(ctx context.Context, stdout io.Writer) (result export.Result, err error) {
	source, err := x.open()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	return x.write(ctx, stdout, source)
}

// Complete is an error if the run lacks episodes and that is not what is wanted.
func (x *Exporting) Complete() error {
	if x.Partial || x.lacks == "" {
		return nil
	}
	return fmt.Errorf("%s; trajgen run --resume plays the rest, and --partial says that what is there is meant", x.lacks)
}

// open opens the episodes that are chosen, decoded ahead of the writer.
func (x *Exporting) open() (source export.Source, err error) {
	x.Out = filepath.Clean(x.Out)
	total := 0
	if x.Run != "" {
		m, reader, err := OpenFinished(x.Run)
		if err != nil {
			return nil, err
		}
		source, total, x.close = reader, reader.Len(), reader.Close
		x.Options.Images, x.Options.Run, x.lacks = media.Open(media.Dir(x.Run)).Read, m.Exported(x.Run), m.Lacks(x.Run, total)
	} else {
		files, err := export.OpenFiles(x.From...)
		if err != nil {
			return nil, AsMistake(err)
		}
		source, total, x.close = files, files.Len(), files.Close
		x.Options.Images, x.notes = files.Image, files.Notes()
		if m, err := ReadManifest(x.From[0]); err == nil && len(x.From) == 1 {
			x.Options.Run, x.lacks = m.Exported(x.From[0]), m.Lacks(x.From[0], total)
		}
	}
	source = export.Ahead(source)
	if x.Watch != nil {
		if x.Choice.Grouped() {
			total *= 2 // readings
		}
		source = export.Seen(source, x.Watch(total))
	}
	if x.WithoutHarness {
		source = export.WithoutHarness(source)
	}
	if source, err = export.Choose(source, x.Choice); err != nil {
		return nil, errors.Join(AsMistake(err), x.close())
	}
	return source, nil
}

// write writes the episodes. The notes of the result say which data of the format they lack, and which of them are missing.
func (x *Exporting) write(ctx context.Context, stdout io.Writer, source export.Source) (export.Result, error) {
	result, err := exportTo(ctx, stdout, source, x.To, x.Out, x.Options)
	if err != nil {
		return result, err
	}
	if !export.Formats()[x.To].Rows {
		result.Notes = append(append([]string{}, x.notes...), result.Notes...)
	}
	if x.Partial && x.lacks != "" {
		result.Notes = append(result.Notes, x.lacks)
	}
	return result, nil
}
