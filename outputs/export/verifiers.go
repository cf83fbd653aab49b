package export

import (
	"cmp"

	"trajgen/pipeline/episode"
)

var verifiersFormat = Format{
	trains:   true,
	imaging:  inlined,
	nests:    true,
	About:    "a results directory of verifiers v1: traces.jsonl with the message graph, and configs/eval.json",
	Folder:   true,
	Settings: map[string]Setting{"env": {About: "is the id of the environment (default: the run's dataset)"}},
	open: func(path string, options Options) (target, error) {
		w := &verifiersWriter{notes: notes{}, env: verifiersEnv(options), run: options.Run}
		s, err := openFolderSink(path, "traces.jsonl", w.notes)
		if err != nil {
			return nil, err
		}
		s.convert = w.episode
		s.last = func() error { return s.createJSON("configs/eval.json", s.lines.rows, w.config()) }
		return s, nil
	},
}

func verifiersEnv(options Options) string {
	return cmp.Or(options.Set["env"], options.Run.Dataset, "trajgen")
}

// verifiersWriter makes Episodes of verifiers v1.
type verifiersWriter struct {
	notes
	env string
	run Run
}

func (w *verifiersWriter) episode(ep *episode.Episode) (object, error) {
	if len(ep.Messages) == 0 {
		return nil, &Refusal{refuseEmpty}
	}
	// What verifiers has no field for stands beside its own.
	data := object{
		{"idx", ep.Row},
		{"name", ep.Key.Task},
		{"prompt", some(question(asked(ep)))},
		{"system_prompt", some(ep.Task.System)},
		{"image", some(ep.Task.Image)},
		{"workdir", some(ep.Task.Cwd)},
		{"answer", some(answerOf(&ep.Task))},
		{"tags", some(ep.Task.Tags)},
		{"difficulty", some(ep.Task.Difficulty)},
		{"metadata", some(shallow(ep.Task.Metadata))},
	}
	task := object{{"type", "Task"}, {"data", data}, {"key", ep.Key.Task}}
	var traces []object
	for each := range ep.Tree() { // the episode's own trace, then its subagents'
		trace, err := w.trace(each, task)
		if err != nil {
			return nil, err
		}
		traces = append(traces, trace)
	}
	e := object{{"id", ep.ID}, {"env", object{{"id", w.env}}}, {"task", task}, {"group", object{{"id", ep.Key.Task}}}}
	if id := cmp.Or(w.run.Fingerprint, ep.Run); id != "" {
		e = append(e, field{"run", object{{"type", "eval"}, {"id", id}, {"name", some(w.run.Name)}}})
	}
	return append(e, object{{"ok", ep.Outcome.AgentsDoing()}, {"errors", verifiersErrors(ep)}, {"traces", traces}}...), nil
}

// verifiersErrors are those of all attempts, oldest first.
func verifiersErrors(ep *episode.Episode) []object {
	errs := []object{}
	add := func(f *episode.Fault) {
		if f != nil {
			errs = append(errs, verifiersError(f))
		}
	}
	for i := range ep.Earlier {
		add(ep.Earlier[i].Fault)
	}
	add(ep.Fault)
	return errs
}

func verifiersError(f *episode.Fault) object {
	return object{{"type", string(f.Outcome) + "." + f.Class}, {"message", f.Message}}
}

// config is what the run was asked to do.
func (w *verifiersWriter) config() object {
	return object{
		{"env", object{{"id", w.env}}},
		{"model", some(w.run.Model)},
		{"base_url", some(w.run.BaseURL)},
		{"num_tasks", some(w.run.Tasks)},
		{"num_rollouts", some(w.run.Samples)},
		{"seed", w.run.Seed},
		{"run_file", some(asObject(w.run.RunFile))},
	}
}
