package export

import (
	"regexp"
	"strconv"

	"trajgen/pipeline/episode"
)

var tokensFormat = Format{
	shows: true,
	About: "token ids as the model saw and sampled them: input_ids, attention_mask, and labels that are -100 wherever the model did not sample, " +
		"so that prompts, results of tools and everything that the harness said are masked. Episodes whose ids are not known, or drifted, are refused",
	Settings: map[string]Setting{
		"file": {About: "parquet (default) or jsonl", words: []string{"parquet", "jsonl"}},
		"max_length": {
			About: "tokens of a row, at most; longer episodes are refused (default: no limit)",
			form:  regexp.MustCompile(`^0*[1-9][0-9]{0,17}$`), want: "a whole number over 0",
		},
	},
	open: openTokens,
}

// tokensRow is a row of token ids. Its lists are of one length.
type tokensRow struct {
	ID            string   `json:"id" parquet:"id"`
	InputIDs      []int32  `json:"input_ids" parquet:"input_ids,list"`
	AttentionMask []int8   `json:"attention_mask" parquet:"attention_mask,list"`
	Labels        []int32  `json:"labels" parquet:"labels,list"`
	Reward        *float64 `json:"reward" parquet:"reward,optional"`
}

// masked is the label of a token that is not trained on.
const masked = -100

func openTokens(path string, options Options) (target, error) {
	most, _ := strconv.Atoi(options.Set["max_length"]) // 0 when it is not given
	return openRowSink(path, rowKind{as: options.Set["file"], name: "tokens", id: "id"}, options, nil, func(ep *episode.Episode) (*tokensRow, error) {
		ids, spans, err := sequence(ep)
		if err != nil {
			return nil, err
		}
		if most > 0 && len(ids) > most {
			return nil, &Refusal{"more tokens than max_length"}
		}
		row := &tokensRow{ID: ep.ID, InputIDs: ids, AttentionMask: make([]int8, len(ids)), Labels: make([]int32, len(ids)), Reward: ep.Reward}
		for i := range ids {
			row.AttentionMask[i], row.Labels[i] = 1, masked
		}
		for _, span := range spans {
			copy(row.Labels[span.Start:span.End], ids[span.Start:span.End])
		}
		return row, nil
	})
}
