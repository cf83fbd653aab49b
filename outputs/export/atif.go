package export

import (
	"errors"
	"io"
	"path"
	"strconv"

	"trajgen/pipeline/episode"
)

var atifFormat = Format{
	About:  "ATIF-v1.7, a directory with TASK/SAMPLE/trajectory.json and index.jsonl, which says what each came to",
	Folder: true,
	Settings: map[string]Setting{"ids": {
		About: "is completion (default) for the token ids that were sampled with their logprobs, prompt for the whole prompt of each turn too, or none",
		words: []string{"completion", "prompt", "none"},
	}},
	open: openATIF,
}

var atifLinesFormat = Format{
	About:    "ATIF-v1.7, one trajectory per line",
	Settings: atifFormat.Settings,
	open: func(path string, options Options) (target, error) {
		w := newATIFWriter(options)
		return openRowSink(path, rowKind{as: "jsonl", name: "trajectories"}, options, w.notes, w.trajectory)
	},
}

// atifIndex is a line of index.jsonl. ATIF itself has no place for a reward.
type atifIndex struct {
	ID      string          `json:"id"`
	Task    string          `json:"task"`
	Sample  int             `json:"sample"`
	Path    string          `json:"path"`
	Outcome episode.Outcome `json:"outcome"`
	Reward  *float64        `json:"reward"`
}

type atifSink struct {
	*atifWriter
	*folder
	index  *spool
	rows   int64
	names  safeNames
	counts repetitions
}

const atifIndexName = "index.jsonl"

func openATIF(path string, options Options) (target, error) {
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	index, err := openSpool(f.path)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return &atifSink{atifWriter: newATIFWriter(options), folder: f, index: index, names: newSafeNames(atifIndexName, folderMark), counts: repetitions{}}, nil
}

func (s *atifSink) add(ep *episode.Episode) error {
	trajectory, err := s.trajectory(ep)
	if err != nil {
		return err
	}
	name := path.Join(s.names.name(ep.Key.Task), strconv.Itoa(s.counts.number(ep, s.notes)), "trajectory.json")
	if err := s.createJSON(name, 1, trajectory); err != nil {
		return err
	}
	line, err := encodeLine(atifIndex{ep.ID, ep.Key.Task, ep.Key.Sample, name, ep.Outcome, ep.Reward})
	if err == nil {
		_, err = s.index.Write(line)
	}
	s.rows++
	return err
}

func (s *atifSink) finish() ([]FileInfo, error) {
	from, err := s.index.read()
	if err != nil {
		return nil, err
	}
	err = s.create(atifIndexName, s.rows, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.commit()
}

func (s *atifSink) close() error { return errors.Join(s.index.Close(), s.folder.close()) }
