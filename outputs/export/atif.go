package export

import (
	"path"
	"strconv"

	"trajgen/pipeline/episode"
)

var atifFormat = Format{
	imaging: inlined,
	nests:   true,
	About:   "ATIF-v1.7, a directory with TASK/SAMPLE/trajectory.json and index.jsonl, which says what each came to",
	Folder:  true,
	Settings: map[string]Setting{"ids": {
		About: "is completion (default) for the token ids that were sampled with their logprobs, prompt for the whole prompt of each turn too, or none",
		words: []string{"completion", "prompt", "none"},
	}},
	open: openATIF,
}

var atifLinesFormat = Format{
	imaging:  inlined,
	nests:    true,
	About:    "ATIF-v1.7, one trajectory per line",
	Settings: atifFormat.Settings,
	open: func(path string, options Options) (target, error) {
		w := newATIFWriter(options)
		return openRowSink(path, rowKind{as: "jsonl", name: "trajectories"}, options, w.notes, w.trajectory)
	},
}

const atifIndex = "index.jsonl"

// openATIF writes each document as it comes, and a line of the index, as ATIF itself has no place for a reward.
func openATIF(dir string, options Options) (target, error) {
	w, names, counts := newATIFWriter(options), newSafeNames(atifIndex, folderMark), repetitions{}
	s, err := openFolderSink(dir, atifIndex, w.notes)
	if err != nil {
		return nil, err
	}
	s.convert = func(ep *episode.Episode) (object, error) {
		trajectory, err := w.trajectory(ep)
		if err != nil {
			return nil, err
		}
		name := path.Join(names.name(ep.Key.Task), strconv.Itoa(counts.number(ep, w.notes)), "trajectory.json")
		return object{
			{"id", ep.ID}, {"task", ep.Key.Task}, {"sample", ep.Key.Sample}, {"path", name}, {"outcome", ep.Outcome}, {"reward", ep.Reward},
		}, s.createJSON(name, 1, trajectory)
	}
	return s, nil
}
