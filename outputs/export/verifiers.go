package export

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"os"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

var verifiersFormat = Format{
	About:    "a results directory of verifiers v1: traces.jsonl with the message graph, and configs/eval.json",
	Folder:   true,
	Settings: map[string]Setting{"env": {About: "is the id of the environment (default: the run's dataset)"}},
	open: func(path string, options Options) (target, error) {
		s, err := openTraces(path, "traces.jsonl", options)
		if err != nil {
			return nil, err
		}
		w := &verifiersWriter{notes: s.notes, env: s.env, run: options.Run}
		s.convert = w.episode
		s.last = func() error { return s.createJSON("configs/eval.json", s.rows, w.config()) }
		return s, nil
	},
}

// traces is a folder with one file of a line per episode, and others that are written last.
type traces struct {
	notes
	*folder
	env     string
	out     *os.File
	buffer  *bufio.Writer
	rows    int64
	convert func(*episode.Episode) (any, error)
	last    func() error
}

func openTraces(path, name string, options Options) (*traces, error) {
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	out, err := f.begin(name)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	env := cmp.Or(options.Set["env"], options.Run.Dataset, "trajgen")
	return &traces{notes: notes{}, folder: f, env: env, out: out, buffer: bufio.NewWriterSize(out, 1<<18)}, nil
}

func (s *traces) add(ep *episode.Episode) error {
	value, err := s.convert(ep)
	if err != nil {
		return err
	}
	line, err := encodeLine(value)
	if err != nil {
		return err
	}
	s.rows++
	if _, err := s.buffer.Write(line); err != nil {
		return disk.Explain(s.path, err)
	}
	return nil
}

func (s *traces) finish() ([]FileInfo, error) {
	if err := s.buffer.Flush(); err != nil {
		return nil, disk.Explain(s.path, err)
	}
	if err := s.done(s.out, s.rows); err != nil {
		return nil, err
	}
	if err := s.last(); err != nil {
		return nil, err
	}
	return s.commit()
}

// verifiersWriter makes Episodes of verifiers v1.
type verifiersWriter struct {
	notes
	env string
	run Run
}

type verifiersEpisode struct {
	ID     string            `json:"id"`
	Env    verifiersEnv      `json:"env"`
	Task   verifiersTask     `json:"task"`
	Group  verifiersGroup    `json:"group"`
	Run    *verifiersRun     `json:"run,omitempty"`
	OK     bool              `json:"ok"`
	Errors []verifiersError  `json:"errors"`
	Traces []*verifiersTrace `json:"traces"`
}

type verifiersEnv struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

type verifiersTask struct {
	Type string        `json:"type"`
	Data verifiersData `json:"data"`
	Key  string        `json:"key"`
}

// verifiersData is the row that was played. What verifiers has no field for stands beside its own.
type verifiersData struct {
	Idx          int             `json:"idx"`
	Name         string          `json:"name"`
	Prompt       string          `json:"prompt,omitempty"`
	SystemPrompt string          `json:"system_prompt,omitempty"`
	Image        string          `json:"image,omitempty"`
	Workdir      string          `json:"workdir,omitempty"`
	Answer       string          `json:"answer,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Difficulty   string          `json:"difficulty,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

type verifiersGroup struct {
	ID string `json:"id"`
}

type verifiersRun struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

type verifiersError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (w *verifiersWriter) episode(ep *episode.Episode) (any, error) {
	if len(ep.Messages) == 0 {
		return nil, &Refusal{refuseEmpty}
	}
	task := verifiersTask{Type: "Task", Key: ep.Key.Task, Data: verifiersData{
		Idx: ep.Row, Name: ep.Key.Task, Prompt: question(asked(ep)), SystemPrompt: ep.Task.System, Image: ep.Task.Image, Workdir: ep.Task.Cwd,
		Answer: answerOf(&ep.Task), Tags: ep.Task.Tags, Difficulty: ep.Task.Difficulty, Metadata: shallow(ep.Task.Metadata),
	}}
	trace, err := w.trace(ep, task)
	if err != nil {
		return nil, err
	}
	e := verifiersEpisode{
		ID: ep.ID, Env: verifiersEnv{ID: w.env}, Task: task, Group: verifiersGroup{ep.Key.Task}, OK: ep.Outcome.AgentsDoing(),
		Errors: verifiersErrors(ep), Traces: []*verifiersTrace{trace},
	}
	if id := cmp.Or(w.run.Fingerprint, ep.Run); id != "" {
		e.Run = &verifiersRun{"eval", id, w.run.Name}
	}
	return e, nil
}

// verifiersErrors are those of all attempts, oldest first.
func verifiersErrors(ep *episode.Episode) []verifiersError {
	errs := []verifiersError{}
	add := func(f *episode.Fault) {
		if f != nil {
			errs = append(errs, verifiersError{string(f.Outcome) + "." + f.Class, f.Message})
		}
	}
	for i := range ep.Earlier {
		add(ep.Earlier[i].Fault)
	}
	add(ep.Fault)
	return errs
}

// config is what the run was asked to do.
func (w *verifiersWriter) config() any {
	config := struct {
		Env      verifiersEnv    `json:"env"`
		Model    string          `json:"model,omitempty"`
		BaseURL  string          `json:"base_url,omitempty"`
		NumTasks int             `json:"num_tasks,omitempty"`
		Rollouts int             `json:"num_rollouts,omitempty"`
		Seed     uint64          `json:"seed"`
		RunFile  json.RawMessage `json:"run_file,omitempty"`
	}{verifiersEnv{ID: w.env}, w.run.Model, w.run.BaseURL, w.run.Tasks, w.run.Samples, w.run.Seed, object(w.run.RunFile)}
	return config
}
