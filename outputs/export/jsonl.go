package export

import "trajgen/pipeline/episode"

var jsonlFormat = Format{
	imaging: named,
	nests:   true,
	About:   "one episode per line, exactly as the journal holds it",
	open: func(path string, options Options) (target, error) {
		same := func(ep *episode.Episode) (*episode.Episode, error) { return ep, nil }
		return openRowSink(path, rowKind{as: "jsonl", name: "episodes"}, options, nil, same)
	},
}
