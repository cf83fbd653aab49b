package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"trajgen/pipeline/episode"
)

var preferenceFormat = Format{
	trains:  true,
	imaging: inlined,
	About: "TRL's preference pairs: samples of one task that had the same prompt and the same tools, the one with the higher reward chosen and the other rejected. " +
		"What the harness said before the model's first message is part of the prompt, and what it said later of the answers. " +
		"--inline-media refuses episodes with images in the answers, where TRL looks for none",
	Settings: map[string]Setting{
		"pairs": {
			About: "best-worst (default: of each group the best sample against the worst) or all (every two samples that are far enough apart)",
			words: []string{"best-worst", "all"},
		},
		"margin":    {About: "how much higher the reward of the chosen sample must be at least (default 0.1)"},
		"file":      trlSettings["file"],
		"json":      trlSettings["json"],
		"reasoning": trlSettings["reasoning"],
	},
	open: func(path string, options Options) (target, error) {
		if options.Inline {
			return openPreference(path, options, trlParts, func(row preferenceRow[[]trlPart], prompt []episode.Message) *preferencePictured {
				return &preferencePictured{row, rowImages(prompt)}
			})
		}
		return openPreference(path, options, trlText, func(row preferenceRow[string], _ []episode.Message) *preferenceRow[string] {
			return &row
		})
	},
}

// preferenceRow is a row of a pair.
type preferenceRow[Content any] struct {
	Task           string                 `json:"task" parquet:"task"`
	ChosenID       string                 `json:"chosen_id" parquet:"chosen_id"`
	RejectedID     string                 `json:"rejected_id" parquet:"rejected_id"`
	Prompt         []chatMessage[Content] `json:"prompt" parquet:"prompt,list"`
	Chosen         []chatMessage[Content] `json:"chosen" parquet:"chosen,list"`
	Rejected       []chatMessage[Content] `json:"rejected" parquet:"rejected,list"`
	Tools          jsonText               `json:"tools" parquet:"tools,dict"`
	ChosenReward   float64                `json:"chosen_reward" parquet:"chosen_reward"`
	RejectedReward float64                `json:"rejected_reward" parquet:"rejected_reward"`
}

// preferencePictured is a row with the images of its prompt (DataCollatorForVisionPreference in trl/trainer/dpo_trainer.py).
type preferencePictured struct {
	preferenceRow[[]trlPart]
	Images []rowImage `json:"images" parquet:"images,list"`
}

// Why an episode is in no pair.
const (
	dropNoReward = "no reward"
	dropAlone    = "the only sample with a reward of its task, prompt and tools"
	dropTie      = "no other sample whose reward is as far away as the margin"
	dropMiddle   = "between the best sample and the worst"
)

// preferenceSink holds samples at one row of the dataset in memory: all of them for pairs=all, else the best and the worst
// of each group.
type preferenceSink[Content, Row any] struct {
	rowFile[Row]
	*trlWriter
	say      sayTRL[Content]
	complete func(row preferenceRow[Content], prompt []episode.Message) Row
	inline   bool
	all      bool
	margin   float64
	row      int
	groups   []*preferenceGroup // in the order in which they came
	dropped  map[string]int
}

// preferenceGroup are samples that can be compared.
type preferenceGroup struct {
	key     [sha256.Size]byte  // promptDigest
	samples []*episode.Episode // best first
	middle  int                // those that were let go
}

func openPreference[Content, Row any](
	path string, options Options, say sayTRL[Content], complete func(preferenceRow[Content], []episode.Message) Row,
) (target, error) {
	margin := 0.1
	if text, ok := options.Set["margin"]; ok {
		var err error
		margin, err = strconv.ParseFloat(text, 64)
		if err != nil || !(margin >= 0) || math.IsInf(margin, 0) {
			return nil, fmt.Errorf("output format trl-preference: margin is %q (want a number that is not below 0)", text)
		}
	}
	w := newTRLWriter(true, options)
	out, err := openRowFile[Row](path, w.kind("preference", "chosen_id"), options)
	if err != nil {
		return nil, err
	}
	return &preferenceSink[Content, Row]{
		rowFile: out, trlWriter: w, say: say, complete: complete, inline: options.Inline, all: options.Set["pairs"] == "all", margin: margin, dropped: map[string]int{},
	}, nil
}

// Notes are what the rows leave out.
func (s *preferenceSink[Content, Row]) Notes() []string { return s.notes.Notes() }

// Dropped counts the samples that are in no pair.
func (s *preferenceSink[Content, Row]) Dropped() map[string]int { return s.dropped }

func (s *preferenceSink[Content, Row]) add(ep *episode.Episode) error {
	if ep.Reward == nil {
		return &Refusal{dropNoReward}
	}
	if _, _, err := promptAndRest(s.trlWriter, ep, s.say); err != nil {
		return err // a *Refusal, like all errors of a conversation
	}
	if s.inline && slices.ContainsFunc(ep.Messages[opening(ep):], pictures) {
		return &Refusal{refuseAnswered}
	}
	if ep.Row != s.row {
		if err := s.endRow(); err != nil {
			return err
		}
		s.row = ep.Row
	}
	key, err := promptDigest(ep)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(s.groups, func(g *preferenceGroup) bool { return g.key == key })
	if at < 0 {
		at = len(s.groups)
		s.groups = append(s.groups, &preferenceGroup{key: key})
	}
	s.groups[at].add(ep, s.all)
	return nil
}

// add keeps a sample, and lets go which is neither the best nor the worst unless all are wanted.
func (g *preferenceGroup) add(ep *episode.Episode, all bool) {
	at, _ := slices.BinarySearchFunc(g.samples, ep, func(a, b *episode.Episode) int {
		return cmp.Or(cmp.Compare(*b.Reward, *a.Reward), datasetOrder(a, b))
	})
	g.samples = slices.Insert(g.samples, at, ep)
	if all || len(g.samples) < 3 {
		return
	}
	keep := max(g.worst(), 1)
	g.samples = []*episode.Episode{g.samples[0], g.samples[keep]}
	g.middle++
}

// worst is the place of the first one that has the least reward.
func (g *preferenceGroup) worst() int {
	least := *g.samples[len(g.samples)-1].Reward
	return slices.IndexFunc(g.samples, func(ep *episode.Episode) bool { return *ep.Reward == least })
}

func (s *preferenceSink[Content, Row]) finish() ([]FileInfo, error) {
	if err := s.endRow(); err != nil {
		return nil, err
	}
	return s.rowFile.finish()
}

// endRow pairs the samples of each group at the row.
func (s *preferenceSink[Content, Row]) endRow() error {
	for _, group := range s.groups {
		if err := s.pair(group); err != nil {
			return err
		}
	}
	s.groups = nil
	return nil
}

// promptDigest is the same for samples of a task that had the same prompt and the same tools.
func promptDigest(ep *episode.Episode) (key [sha256.Size]byte, err error) {
	text, err := encodeLine(struct {
		Task   string
		Prompt []episode.Message
		Tools  []json.RawMessage
	}{ep.Key.Task, ep.Messages[:opening(ep)], ep.Tools})
	if err != nil {
		return key, fmt.Errorf("prompt of episode %s: %w", ep.ID, err)
	}
	return sha256.Sum256(text), nil
}

// pair writes the pairs of a group.
func (s *preferenceSink[Content, Row]) pair(group *preferenceGroup) error {
	samples := group.samples
	if len(samples) == 1 {
		s.dropped[dropAlone]++
		return nil
	}
	used := make([]bool, len(samples))
	worst := group.worst()
	for i, chosen := range samples {
		for j := i + 1; j < len(samples); j++ {
			gap := *chosen.Reward - *samples[j].Reward
			if gap <= 0 || gap < s.margin || !s.all && (i != 0 || j != worst) {
				continue
			}
			used[i], used[j] = true, true
			if err := s.putPair(chosen, samples[j]); err != nil {
				return err
			}
		}
		if !s.all {
			break
		}
	}
	for i, ep := range samples {
		if used[i] {
			s.note(ep)
		} else {
			s.dropped[dropTie]++
		}
	}
	switch {
	case group.middle == 0:
	case used[0]:
		s.dropped[dropMiddle] += group.middle
	default:
		s.dropped[dropTie] += group.middle
	}
	return nil
}

// putPair writes a pair.
func (s *preferenceSink[Content, Row]) putPair(chosen, rejected *episode.Episode) error {
	prompt, better, err := promptAndRest(s.trlWriter, chosen, s.say)
	if err != nil {
		return err
	}
	_, worse, err := promptAndRest(s.trlWriter, rejected, s.say)
	if err != nil {
		return err
	}
	return s.put(s.complete(preferenceRow[Content]{
		Task: chosen.Key.Task, ChosenID: chosen.ID, RejectedID: rejected.ID,
		Prompt: prompt, Chosen: better, Rejected: worse, Tools: s.tools(chosen.Tools),
		ChosenReward: *chosen.Reward, RejectedReward: *rejected.Reward,
	}, chosen.Messages[:opening(chosen)]))
}
