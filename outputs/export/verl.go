package export

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/parquet-go/parquet-go"

	"trajgen/pipeline/episode"
)

var verlFormat = Format{
	trains:  true,
	imaging: inlined,
	About: "tasks as verl's reinforcement learning reads them (Parquet), one row for the first sample of each. With --inline-media " +
		"each row has a column images with those of the prompt, whose places are marked <image>",
	Settings: map[string]Setting{
		"data_source": {About: "names where the tasks are from; verl picks the reward function by it (default: the run's dataset)"},
		"agent":       {About: "is the agent loop that plays the tasks (default tool_agent)"},
		"ability":     {About: "is what the tasks are about (default: the difficulty of each, or agent)"},
		"split":       {About: "is train or test (default train)", words: []string{"train", "test"}},
		"interaction": {About: "is the name of the interaction that speaks for the user (default: there is none)"},
	},
	open: openVerl,
}

// verlRow is a row of verl's datasets. RLHFDataset takes each <image> in a text for the next of the row's images
// (verl/utils/dataset/rl_dataset.py).
type verlRow struct {
	ID          string        `parquet:"id" json:"id"`
	DataSource  string        `parquet:"data_source,dict" json:"data_source"`
	AgentName   string        `parquet:"agent_name,dict" json:"agent_name"`
	Prompt      []verlMessage `parquet:"prompt,list" json:"prompt"`
	Ability     string        `parquet:"ability,dict" json:"ability"`
	RewardModel verlReward    `parquet:"reward_model" json:"reward_model"`
	Images      []rowImage    `parquet:"images,list" json:"images"` // a column with --inline-media alone
	ExtraInfo   verlExtra     `parquet:"extra_info" json:"extra_info"`
}

type verlMessage struct {
	Role    string `parquet:"role,dict" json:"role"`
	Content string `parquet:"content" json:"content"`
}

type verlReward struct {
	Style       string `parquet:"style,dict" json:"style"`
	GroundTruth string `parquet:"ground_truth" json:"ground_truth"`
}

type verlExtra struct {
	Split             string           `parquet:"split,dict" json:"split"`
	Index             int64            `parquet:"index" json:"index"`
	TaskID            string           `parquet:"task_id" json:"task_id"`
	Question          string           `parquet:"question" json:"question"`
	Answer            string           `parquet:"answer" json:"answer"`
	NeedToolsKwargs   bool             `parquet:"need_tools_kwargs" json:"need_tools_kwargs"`
	InteractionKwargs *verlInteraction `parquet:"interaction_kwargs,optional" json:"interaction_kwargs,omitempty"`
}

type verlInteraction struct {
	Name        string `parquet:"name,dict" json:"name"`
	Query       string `parquet:"query" json:"query"`
	GroundTruth string `parquet:"ground_truth" json:"ground_truth"`
}

// verlTool is what a tool of verl's is created with: what it takes to open the task's sandbox.
type verlTool struct {
	CreateKwargs verlCreate `parquet:"create_kwargs" json:"create_kwargs"`
}

type verlCreate struct {
	TaskID      string `parquet:"task_id" json:"task_id"`
	GroundTruth string `parquet:"ground_truth" json:"ground_truth"`
	Image       string `parquet:"image,dict" json:"image"`
	Cwd         string `parquet:"cwd,dict" json:"cwd"`
	Setup       string `parquet:"setup" json:"setup"`
}

// verlSink keeps the rows beside the file until all tools are known: a row has a field for each tool of the whole
// dataset, as verl looks for the arguments of every tool that its configuration has.
type verlSink struct {
	*file
	notes
	firsts
	options Options
	kept    *spool
	tools   map[string]bool
}

const (
	verlTools    = 512 // at most, over all rows: each is a group of columns
	noteOddTools = "rows with a tool whose name no column can have; it got no arguments"
)

// verlName is what a tool is called in all APIs.
var verlName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func openVerl(path string, options Options) (target, error) {
	f, err := openFile(path, "train.parquet")
	if err != nil {
		return nil, err
	}
	kept, err := openSpool(path)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return &verlSink{file: f, notes: notes{}, options: options, kept: kept, tools: map[string]bool{}}, nil
}

func (s *verlSink) add(ep *episode.Episode) error {
	row, err := s.row(ep)
	if err != nil {
		return err
	}
	return s.keep(row, ep)
}

// row is the row of an episode's task.
func (s *verlSink) row(ep *episode.Episode) (*verlRow, error) {
	prompt, truth, err := s.firsts.task(ep, s.notes, saying(s.options))
	if err != nil {
		return nil, err
	}
	set := s.options.Set
	asks := question(asked(ep))
	row := &verlRow{
		ID: ep.Key.Task, Prompt: prompt,
		DataSource:  cmp.Or(set["data_source"], s.options.Run.Dataset, "trajgen"),
		AgentName:   cmp.Or(set["agent"], "tool_agent"),
		Ability:     cmp.Or(set["ability"], ep.Task.Difficulty, "agent"),
		RewardModel: verlReward{Style: "rule", GroundTruth: truth},
		Images:      rowImages(asked(ep)),
		ExtraInfo: verlExtra{
			Split: set["split"], Index: int64(ep.Row), TaskID: ep.Key.Task, Question: asks,
			Answer: answerOf(&ep.Task), NeedToolsKwargs: len(ep.Tools) > 0,
		},
	}
	if name := set["interaction"]; name != "" {
		row.ExtraInfo.InteractionKwargs = &verlInteraction{Name: name, Query: asks, GroundTruth: truth}
	}
	return row, nil
}

// task is what the model was first asked, without a call of a tool, which a prompt has no place for, and what its answer is
// judged by. Only the first sample of a task gives a row.
func (f *firsts) task(ep *episode.Episode, n notes, say sayer) (prompt []verlMessage, truth string, err error) {
	for _, m := range asked(ep) {
		if len(m.Calls) > 0 || m.Role == "tool" {
			return nil, "", &Refusal{refusePrefill}
		}
		text, err := say(&m)
		if err != nil {
			return nil, "", err
		}
		prompt = append(prompt, verlMessage{m.Role, text})
	}
	if len(prompt) == 0 {
		return nil, "", &Refusal{refusePrompt}
	}
	if truth, err = groundTruth(&ep.Task); err != nil {
		return nil, "", err
	}
	if !f.first(ep) {
		return nil, "", &Refusal{refuseSample}
	}
	n.remarkTask(ep)
	return prompt, truth, nil
}

// keep keeps a row with what its tools are created with.
func (s *verlSink) keep(row *verlRow, ep *episode.Episode) error {
	odd := false
	for _, name := range functionNames(ep.Tools) {
		switch {
		case !verlName.MatchString(name):
			odd = true
		case !s.tools[name] && len(s.tools) == verlTools:
			return fmt.Errorf("more than %d tools over all rows, each of which is a column (choose with --where)", verlTools)
		default:
			s.tools[name] = true
		}
	}
	if odd {
		s.notes[noteOddTools]++
	}
	create := verlCreate{
		TaskID: row.ID, GroundTruth: row.RewardModel.GroundTruth, Image: ep.Task.Image, Cwd: ep.Task.Cwd, Setup: ep.Task.Setup,
	}
	return s.kept.add(keptRow{row, create})
}

type keptRow struct {
	Row    *verlRow
	Create verlCreate
}

// finish writes the Parquet file.
func (s *verlSink) finish() ([]FileInfo, error) {
	names := slices.Sorted(maps.Keys(s.tools))
	row := reflect.New(verlType(names, s.options.Inline)).Elem()
	schema := parquet.NewSchema("verl", parquet.SchemaOf(row.Addr().Interface()))
	out := &parquetFile[any]{s.file, newParquetRows[any](s.file, schema, "id", s.options)}
	for kept, err := range spooled[keptRow](s.kept) {
		if err != nil {
			return nil, err
		}
		fillVerl(row, &kept, len(names))
		if err := out.put(row.Interface()); err != nil {
			return nil, err
		}
	}
	return out.finish()
}

// verlType is verlRow with a field in extra_info for each tool, and with or without images.
func verlType(tools []string, images bool) reflect.Type {
	extra := reflect.VisibleFields(reflect.TypeFor[verlExtra]())
	if len(tools) > 0 {
		fields := make([]reflect.StructField, len(tools))
		for i, name := range tools {
			fields[i] = reflect.StructField{
				Name: fmt.Sprintf("Tool%d", i), Type: reflect.TypeFor[verlTool](), Tag: reflect.StructTag(fmt.Sprintf(`parquet:"%s"`, name)),
			}
		}
		extra = append(extra, reflect.StructField{Name: "ToolsKwargs", Type: reflect.StructOf(fields), Tag: `parquet:"tools_kwargs"`})
	}
	row := reflect.VisibleFields(reflect.TypeFor[verlRow]())
	row[len(row)-1].Type = reflect.StructOf(extra)
	return reflect.StructOf(slices.DeleteFunc(row, func(f reflect.StructField) bool { return f.Name == "Images" && !images }))
}

// fillVerl sets every field of a row of verlType.
func fillVerl(row reflect.Value, kept *keptRow, tools int) {
	from, last := reflect.ValueOf(kept.Row).Elem(), row.NumField()-1
	for i := range last {
		row.Field(i).Set(from.FieldByName(row.Type().Field(i).Name))
	}
	extra, known := row.Field(last), reflect.ValueOf(kept.Row.ExtraInfo)
	for i := range known.NumField() {
		extra.Field(i).Set(known.Field(i))
	}
	for i := range tools {
		extra.Field(known.NumField()).Field(i).Set(reflect.ValueOf(verlTool{kept.Create}))
	}
}

func (s *verlSink) close() error { return errors.Join(s.kept.Close(), s.file.close()) }
