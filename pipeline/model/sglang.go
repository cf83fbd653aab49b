package model

import "encoding/json"

// Newer versions of SGLang send the ids of a reply as vLLM does, older ones in their meta info. It refuses the fields that ask
// for ids in a stream.
var sglang = server{
	name:   "sglang",
	tokens: []string{"return_token_ids", "return_prompt_token_ids", "return_meta_info", "logprobs"},
	whole:  "SGLang sends token ids with whole replies alone",
	window: []string{"max_model_len"},
	says:   words{ClassContextOverflow: {"exceeds the maximum allowed length"}},
	reply: func(d *draft, r *wireReply) {
		setWord(&d.service.WeightVersion, field(r.Metadata, "weight_version"), r.WeightVersion)
	},
	choice: func(d *draft, c *wireChoice) {
		setWord(&d.service.WeightVersion, field(c.MetaInfo, "weight_version"))
		d.tokens.asked(c.PromptTokenIDs)
		if len(c.MetaInfo) > 0 {
			var info struct {
				Logprobs [][]json.RawMessage `json:"output_token_logprobs"`
			}
			json.Unmarshal(c.MetaInfo, &info)
			d.tokens.meta.add(metaLogprobs(info.Logprobs))
		}
	},
}

// metaLogprobs reads SGLang's list of [log probability, id, text].
func metaLogprobs(entries [][]json.RawMessage) (w wireLogprobs) {
	for _, entry := range entries {
		var value wireNumber
		var id string
		if len(entry) >= 2 {
			value.UnmarshalJSON(entry[0])
			id = scalar(entry[1])
		}
		w.value(value)
		w.id(id)
	}
	return w
}
