package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"trajgen/pipeline/episode"
)

var preferenceFormat = Format{
	About: "TRL's preference pairs: samples of one task that had the same prompt and the same tools, the one with the higher reward chosen and the other rejected. " +
		"What the harness said before the model's first message is part of the prompt, and what it said later of the answers",
	Settings: map[string]string{
		"pairs":     "best-worst (default: of each group the best sample against the worst) or all (every two samples that are far enough apart)",
		"margin":    "how much higher the reward of the chosen sample must be at least (default 0.1)",
		"file":      trlSettings["file"],
		"json":      trlSettings["json"],
		"reasoning": trlSettings["reasoning"],
	},
	open: openPreference,
}

// preferenceRow is a row of a pair.
type preferenceRow[Arguments, Tools jsonText] struct {
	Task           string                  `json:"task" parquet:"task"`
	ChosenID       string                  `json:"chosen_id" parquet:"chosen_id"`
	RejectedID     string                  `json:"rejected_id" parquet:"rejected_id"`
	Prompt         []trlMessage[Arguments] `json:"prompt" parquet:"prompt,list"`
	Chosen         []trlMessage[Arguments] `json:"chosen" parquet:"chosen,list"`
	Rejected       []trlMessage[Arguments] `json:"rejected" parquet:"rejected,list"`
	Tools          Tools                   `json:"tools" parquet:"tools,dict"`
	ChosenReward   float64                 `json:"chosen_reward" parquet:"chosen_reward"`
	RejectedReward float64                 `json:"rejected_reward" parquet:"rejected_reward"`
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
type preferenceSink[Arguments, Tools jsonText] struct {
	rowWriter[preferenceRow[Arguments, Tools]]
	trlWriter
	all     bool
	margin  float64
	row     int
	groups  map[[sha256.Size]byte]*preferenceGroup // by promptDigest
	order   [][sha256.Size]byte                    // in which they came
	dropped map[string]int
}

// preferenceGroup are samples that can be compared.
type preferenceGroup struct {
	samples []*episode.Episode // best first
	middle  int                // those that were let go
}

func openPreference(path string, options Options) (Sink, error) {
	w, err := newTRLWriter("trl-preference", options)
	if err != nil {
		return nil, err
	}
	w.prompted = true
	pairs, err := options.choice("trl-preference", "pairs", "best-worst", "all")
	if err != nil {
		return nil, err
	}
	margin := 0.1
	if text, ok := options.Set["margin"]; ok {
		margin, err = strconv.ParseFloat(text, 64)
		if err != nil || !(margin >= 0) || math.IsInf(margin, 0) {
			return nil, fmt.Errorf("output format trl-preference: margin is %q (want a number that is not below 0)", text)
		}
	}
	switch all := pairs == "all"; w.json {
	case "value":
		return openPairs[jsonValue, jsonValue](path, options, w, all, margin)
	case "string":
		return openPairs[string, string](path, options, w, all, margin)
	default:
		return openPairs[jsonValue, string](path, options, w, all, margin)
	}
}

func openPairs[Arguments, Tools jsonText](path string, options Options, w trlWriter, all bool, margin float64) (Sink, error) {
	out, err := openTRLRows[preferenceRow[Arguments, Tools]](&w, path, "preference", "chosen_id", options)
	if err != nil {
		return nil, err
	}
	return &preferenceSink[Arguments, Tools]{
		rowWriter: out, trlWriter: w, all: all, margin: margin, groups: map[[sha256.Size]byte]*preferenceGroup{}, dropped: map[string]int{},
	}, nil
}

// Notes are what the rows leave out.
func (s *preferenceSink[Arguments, Tools]) Notes() []string { return s.notes.Notes() }

// Dropped counts the samples that are in no pair.
func (s *preferenceSink[Arguments, Tools]) Dropped() map[string]int { return s.dropped }

func (s *preferenceSink[Arguments, Tools]) Write(ctx context.Context, ep *episode.Episode) error {
	if err := s.writable(ctx, ep); err != nil {
		return err
	}
	if ep.Reward == nil {
		return &Refusal{dropNoReward}
	}
	if _, _, err := promptAndRest[Arguments](&s.trlWriter, ep); err != nil {
		return err // a *Refusal, like all errors of a conversation
	}
	if ep.Row != s.row {
		if err := s.finish(); err != nil {
			return err
		}
		s.row = ep.Row
	}
	key, err := promptDigest(ep)
	if err != nil {
		return s.fail(err)
	}
	group := s.groups[key]
	if group == nil {
		group = &preferenceGroup{}
		s.groups[key] = group
		s.order = append(s.order, key)
	}
	group.add(ep, s.all)
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

func (s *preferenceSink[Arguments, Tools]) Commit() ([]FileInfo, error) {
	if err := s.finish(); err != nil {
		return nil, fmt.Errorf("commit: it is not complete: %w", err)
	}
	return s.rowWriter.Commit()
}

// finish pairs the samples of each group at the row.
func (s *preferenceSink[Arguments, Tools]) finish() error {
	for _, key := range s.order {
		if err := s.pair(s.groups[key]); err != nil {
			return err
		}
	}
	clear(s.groups)
	s.order = nil
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
func (s *preferenceSink[Arguments, Tools]) pair(group *preferenceGroup) error {
	samples := group.samples
	if len(samples) == 1 {
		s.dropped[dropAlone]++
		return nil
	}
	used := make([]bool, len(samples))
	worst := group.worst()
	for i, chosen := range samples {
		for j := i + 1; j < len(samples); j++ {
			apart := *chosen.Reward - *samples[j].Reward
			if apart <= 0 || apart < s.margin || !s.all && (i != 0 || j != worst) {
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
			noteTRL[Arguments](&s.trlWriter, ep)
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
func (s *preferenceSink[Arguments, Tools]) putPair(chosen, rejected *episode.Episode) error {
	prompt, better, err := promptAndRest[Arguments](&s.trlWriter, chosen)
	if err != nil {
		return s.fail(err)
	}
	_, worse, err := promptAndRest[Arguments](&s.trlWriter, rejected)
	if err != nil {
		return s.fail(err)
	}
	return s.put(chosen.ID, preferenceRow[Arguments, Tools]{
		Task: chosen.Key.Task, ChosenID: chosen.ID, RejectedID: rejected.ID,
		Prompt: prompt, Chosen: better, Rejected: worse, Tools: trlTools[Tools](chosen.Tools),
		ChosenReward: *chosen.Reward, RejectedReward: *rejected.Reward,
	})
}
