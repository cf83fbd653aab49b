package export

import (
	"archive/zip"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"

	"trajgen/pipeline/episode"
)

var inspectFormat = Format{
	imaging: inlined,
	nests:   true,
	epochs:  true,
	About:   "an Inspect evaluation log, version 2: a sample of it is a task's, an epoch is a sample's (.eval, or .json)",
	Settings: map[string]Setting{
		"file": {
			About: "is eval, a zip file with a member for each sample, or json, one document (default: what the path ends in)",
			words: []string{"", "eval", "json"},
		},
		"task": {About: "is the name of the evaluation (default: the run's)"},
	},
	open: openInspect,
}

// inspectSink writes samples as they come. What an .eval file has behind them, and what a .json file has in front, is
// kept beside the file.
type inspectSink struct {
	*file
	notes
	options Options
	task    string
	zip     *zip.Writer // nil for .json
	samples *list       // for .json
	briefs  *list       // summaries of the samples
	reduced *list       // the mean reward of each task
	ids     safeNames
	counts  repetitions
	tally   inspectTally
	began   bool
}

// zipTime stands for the time of each member: the first that the format has.
var zipTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func openInspect(path string, options Options) (target, error) {
	kind := options.Set["file"]
	if kind == "" {
		switch {
		case strings.HasSuffix(path, ".eval"):
			kind = "eval"
		case strings.HasSuffix(path, ".json"):
			kind = "json"
		default:
			return nil, fmt.Errorf("output format inspect: %s ends in neither .eval nor .json (or say which with --set file=eval)", path)
		}
	}
	f, err := openFile(path, "log.eval")
	if err != nil {
		return nil, err
	}
	s := &inspectSink{
		file: f, notes: notes{}, options: options, task: cmp.Or(options.Set["task"], options.Run.Name, "trajgen"), ids: safeNames{}, counts: repetitions{},
	}
	s.tally.init()
	lists := []**list{&s.briefs, &s.reduced}
	if kind == "eval" {
		s.zip = newZip(s.file)
	} else {
		lists = append(lists, &s.samples)
	}
	for _, l := range lists {
		if *l, err = openList(path); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// newZip is a zip file whose members are deflated by one compressor, one after another: samples are mostly text that
// stands in them twice, where this one is quicker than the standard library's.
func newZip(w io.Writer) *zip.Writer {
	z := zip.NewWriter(w)
	var deflate *flate.Writer
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (_ io.WriteCloser, err error) {
		if deflate == nil {
			deflate, err = flate.NewWriter(w, 5)
			return deflate, err
		}
		deflate.Reset(w)
		return deflate, nil
	})
	return z
}

func (s *inspectSink) add(ep *episode.Episode) error {
	for i := range ep.Messages {
		switch ep.Messages[i].Role {
		case "system", "user", "assistant", "tool":
		default:
			return &Refusal{refuseRole}
		}
	}
	if err := s.begin(ep); err != nil {
		return err
	}
	id := s.sampleID(ep.Key.Task)
	sample := newInspectSample(id, s.counts.number(ep, s.notes)+1, ep)
	s.count(ep, sample)
	if err := s.tally.add(id, ep, sample, s.reduced); err != nil {
		return err
	}
	if err := s.briefs.add(sample.brief); err != nil {
		return err
	}
	if s.zip == nil {
		return s.samples.add(sample.document)
	}
	return s.member(fmt.Sprintf("samples/%s_epoch_%d.json", id, sample.epoch), sample.document)
}

// count notes what a log has no place for.
func (s *inspectSink) count(ep *episode.Episode, sample *inspectSample) {
	if sample.cut {
		s.notes["samples that were shortened so often that not every model event tells what the model was sent"]++
	}
	if ep.Drift != nil {
		s.notes["samples without their token ids and logprobs, for which Inspect has no place without the tokens' texts"]++
	}
	if ep.Reward == nil {
		s.notes["samples without a score: not judged, or not the agent's doing; the metrics leave them out"]++
	}
}

// sampleID is the task's id where it can be the name of a member of a zip file.
func (s *inspectSink) sampleID(task string) string {
	odd := strings.ContainsFunc(task, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f })
	if !odd && len(task) <= safeLength && fs.ValidPath("samples/"+task+"_epoch_1.json") {
		return task
	}
	return s.ids.name(task)
}

// begin writes what stands in front of the samples of an .eval file.
func (s *inspectSink) begin(ep *episode.Episode) error {
	if s.began {
		return nil
	}
	s.began = true
	s.tally.begin(ep)
	if s.zip == nil {
		return nil
	}
	return s.member("_journal/start.json", s.start(""))
}

// member writes a file of the zip file.
func (s *inspectSink) member(name string, value any) error {
	line, err := encodeLine(value)
	if err != nil {
		return err
	}
	return s.stream(name, func(w io.Writer) error {
		_, err := w.Write(line)
		return err
	})
}

func (s *inspectSink) stream(name string, write func(io.Writer) error) error {
	w, err := s.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: zipTime})
	if err != nil {
		return err
	}
	return write(w)
}

func (s *inspectSink) finish() ([]FileInfo, error) {
	if err := s.complete(); err != nil {
		return nil, err
	}
	return s.commit(s.briefs.length)
}

// complete writes what stands behind the samples of an .eval file, or the whole of a .json file.
func (s *inspectSink) complete() error {
	if err := s.begin(&episode.Episode{}); err != nil {
		return err
	}
	if err := s.tally.endRow(s.reduced); err != nil {
		return err
	}
	s.tally.remark(s.notes)
	reductions := func(w io.Writer) error {
		if _, err := io.WriteString(w, `[{"scorer":"reward","reducer":"mean","samples":`); err != nil {
			return err
		}
		if err := s.reduced.copyTo(w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "}]")
		return err
	}
	if s.zip == nil {
		return s.document(reductions)
	}
	for _, member := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"_journal/summaries/1.json", s.briefs.copyTo}, {"summaries.json", s.briefs.copyTo}, {"reductions.json", reductions},
	} {
		if err := s.stream(member.name, member.write); err != nil {
			return err
		}
	}
	if err := s.member("header.json", s.header()); err != nil {
		return err
	}
	return s.zip.Close()
}

// document writes a .json file, whose readers want the samples behind the header.
func (s *inspectSink) document(reductions func(io.Writer) error) error {
	header, err := encode(s.header())
	if err != nil {
		return err
	}
	w := bufio.NewWriter(s.file)
	_, _ = w.Write(header[:len(header)-1]) // without the brace
	_, _ = w.WriteString(`,"samples":`)
	if err := s.samples.copyTo(w); err != nil {
		return err
	}
	_, _ = w.WriteString(`,"reductions":`)
	if err := reductions(w); err != nil {
		return err
	}
	_, _ = w.WriteString("}\n")
	return w.Flush()
}

func (s *inspectSink) close() error {
	err := s.file.close()
	for _, l := range []*list{s.samples, s.briefs, s.reduced} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}
