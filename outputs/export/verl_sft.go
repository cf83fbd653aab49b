package export

import (
	"trajgen/pipeline/episode"
)

var verlSFTFormat = Format{
	shows:   true,
	imaging: inlined,
	About: "conversations as verl's multi-turn fine-tuning reads them (Parquet); what the dataset or the harness put into " +
		"the model's mouth has trainable=false, " +
		"which verl's own dataset class does not look at. Tools and arguments are of the type JSON; " +
		"examples/verl_sft.py is a dataset class that parses them. " +
		"With --inline-media each row has a column images, whose places in the texts are marked <image>",
	Settings: map[string]Setting{"json": {
		About: "what arguments and tools are: value (default: of the logical type JSON; arguments other than an object stand as they were sent back to the model) or string (texts, as the model wrote them)",
		words: []string{"value", "string"},
	}},
	open: func(path string, options Options) (target, error) {
		n, kind, values := notes{}, rowKind{as: "parquet", name: "verl-sft", id: "id"}, options.Set["json"] == "value"
		if values {
			kind.json = []string{"arguments", "tools"}
		}
		talk := func(ep *episode.Episode) (*verlTalk, error) { return newVerlTalk(n, ep, values, saying(options)) }
		if !options.Inline {
			return openRowSink(path, kind, options, n, talk)
		}
		return openRowSink(path, kind, options, n, func(ep *episode.Episode) (*verlPictured, error) {
			row, err := talk(ep)
			if err != nil {
				return nil, err
			}
			return &verlPictured{*row, rowImages(ep.Messages)}, nil
		})
	},
}

// verlTalk is a row of verl's multi-turn datasets. Tools and arguments are of the logical type JSON: as structs, all calls of
// a file would get the arguments of all others, with nulls in them, and a chat template would write those.
type verlTalk struct {
	ID             string     `parquet:"id"`
	Messages       []verlTurn `parquet:"messages,list"`
	Tools          []jsonText `parquet:"tools,list" parquet-element:",dict"`
	EnableThinking bool       `parquet:"enable_thinking"`
}

// verlPictured is a row with images. In all rows of a file with that column, MultiTurnSFTDataset takes each <image> in a text for
// one, and wants as many as there are (verl/utils/dataset/multiturn_sft_dataset.py).
type verlPictured struct {
	verlTalk
	Images []rowImage `parquet:"images,list"`
}

type verlTurn struct {
	chatMessage[string]
	Trainable *bool `parquet:"trainable,optional"` // of an assistant: it is the model's
}

const noteTools = "rows whose tools and arguments are JSON, which verl's dataset class must parse before it applies a chat template (examples/verl_sft.py does)"

func newVerlTalk(n notes, ep *episode.Episode, values bool, say sayer) (row *verlTalk, err error) {
	if err := conversation(ep); err != nil {
		return row, err
	}
	row = &verlTalk{ID: ep.ID, EnableThinking: reasons(ep), Messages: make([]verlTurn, len(ep.Messages))}
	for _, tool := range ep.Tools {
		row.Tools = append(row.Tools, jsonText(tool))
	}
	spoken := ep.Spoken()
	arguments := func(call *episode.Call) (jsonText, error) {
		text, err := argumentsOf(call, values)
		return jsonText(text), err
	}
	for i := range ep.Messages {
		turn := &row.Messages[i]
		text, err := say(&ep.Messages[i])
		if err != nil {
			return nil, err
		}
		if turn.chatMessage, err = newChatMessage(&ep.Messages[i], text, arguments); err != nil {
			return nil, err
		}
		if turn.Role == "assistant" {
			turn.Trainable = new(spoken[i])
		}
	}
	n.remark(ep)
	n.remarkPrefill(ep, 0)
	if values {
		n.remarkResent(ep)
	}
	if len(row.Tools) > 0 {
		n[noteTools]++
	}
	return row, nil
}
