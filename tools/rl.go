package tools

import (
	"context"
	"math"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/rl"
)

const rlToolset = "rl"

// rlTool adds a tool that trains. It runs the operator's programs and files on the runner's machine, never in the sandbox.
func rlTool[A any](name, description string, limit time.Duration,
	do func(ctx context.Context, env *registry.Env, view *rl.View, args A) (any, error),
) {
	d := registry.Definition{Name: name, Toolset: rlToolset, NoSandbox: true, Runner: true, Description: description, Timeout: limit}
	add(registry.Define(d, func(ctx context.Context, env *registry.Env, args A) (any, error) {
		view, ok := registry.Service[*rl.View](env.Session)
		if !ok {
			return nil, registry.Failf("no_environments", "this run declares nothing to train (rl: {environments: ...} in the run file)")
		}
		return do(ctx, env, view, args)
	}))
}

type (
	rlNone   struct{}
	rlSelect struct {
		Name string `json:"name" alias:"environment,environment_name" doc:"The environment, as rl_list_environments has it." maxlen:"200"`
	}
	rlEdit struct {
		Field string `json:"field" alias:"name,key" doc:"The field, as rl_get_current_config has it." maxlen:"200"`
		Value any    `json:"value" doc:"Its new value."`
	}
	rlRun struct {
		ID string `json:"run_id" alias:"id,run" doc:"The training run." maxlen:"200"`
	}
	rlTest struct {
		Steps  int      `json:"num_steps,omitempty" doc:"Tasks of the environment that are played." default:"3" min:"1" max:"10"`
		Group  int      `json:"group_size,omitempty" doc:"Completions of each task." default:"16" min:"1" max:"64"`
		Models []string `json:"models,omitempty" doc:"Models to test, by the names of the run; without any all of them." maxitems:"10"`
	}
)

type rlStarted struct {
	ID          string         `json:"run_id"`
	Status      string         `json:"status"`
	Environment string         `json:"environment"`
	Config      map[string]any `json:"config"`
	Message     string         `json:"message,omitempty"`
}

type rlStatus struct {
	ID          string     `json:"run_id"`
	Status      string     `json:"status"`
	Environment string     `json:"environment"`
	Minutes     float64    `json:"running_time_minutes"`
	Exit        *int       `json:"exit_code,omitempty"`
	Metrics     rl.Metrics `json:"metrics"`
	Log         string     `json:"log,omitempty"`
}

type rlLimited struct {
	ID      string `json:"run_id"`
	Limited bool   `json:"rate_limited"`
	Next    int    `json:"next_check_in_seconds"`
}

// rlTime bounds tools that wait for a trainer to begin or to end.
const rlTime = 16 * time.Minute

func init() {
	rlTool("rl_list_environments", "Lists the environments in which a model can be trained.", 0,
		func(_ context.Context, _ *registry.Env, v *rl.View, _ rlNone) (any, error) {
			all := v.Environments()
			return map[string]any{"environments": all, "count": len(all), "tips": "Select one with rl_select_environment, look at its configuration " +
				"with rl_get_current_config, try it with rl_test_inference, and start with rl_start_training."}, nil
		})
	rlTool("rl_select_environment", "Selects an environment for training. Its configuration begins with the defaults.", 0,
		func(_ context.Context, _ *registry.Env, v *rl.View, args rlSelect) (any, error) {
			if err := v.Select(args.Name); err != nil {
				return nil, err
			}
			return map[string]any{"message": "Selected, with the default configuration.", "environment": args.Name}, nil
		})
	rlTool("rl_get_current_config", "Shows the configuration of the next training: what can be changed, and what is locked.", 0,
		func(_ context.Context, _ *registry.Env, v *rl.View, _ rlNone) (any, error) {
			environment, fields, locked, err := v.Selected()
			if err != nil {
				return nil, err
			}
			return map[string]any{"environment": environment, "configurable_fields": fields, "locked_fields": locked,
				"tip": "Change a field with rl_edit_config."}, nil
		})
	rlTool("rl_edit_config", "Changes a field of the configuration.", 0,
		func(_ context.Context, _ *registry.Env, v *rl.View, args rlEdit) (any, error) {
			value, err := v.Edit(args.Field, args.Value)
			if err != nil {
				return nil, err
			}
			_, config, err := v.Config()
			return map[string]any{"message": "Changed.", "field": args.Field, "value": value, "config": config}, err
		})
	rlTool("rl_start_training", "Starts a training run with the current configuration, and returns when the trainer is ready.", rlTime,
		func(ctx context.Context, env *registry.Env, v *rl.View, _ rlNone) (any, error) {
			look, err := v.Start(ctx)
			env.Source = look
			const message = "Follow it with rl_check_status, and stop it with rl_stop_training."
			return rlStarted{look.ID, look.Status, look.Environment, look.Config, message}, err
		})
	rlTool("rl_check_status", "Tells how a training run does. It tells that once in a while, and how long to wait when it is asked too early.", 0,
		func(_ context.Context, env *registry.Env, v *rl.View, args rlRun) (any, error) {
			s, err := v.Check(args.ID)
			if s.Wait > 0 {
				return rlLimited{args.ID, true, int(math.Ceil(s.Wait.Seconds()))}, err
			}
			env.Source = s.Look
			return rlStatus{args.ID, s.Status, s.Environment, s.Minutes, s.Exit, s.Metrics, s.Log}, err
		})
	rlTool("rl_stop_training", "Stops a training run.", rlTime,
		func(_ context.Context, env *registry.Env, v *rl.View, args rlRun) (any, error) {
			look, err := v.Stop(args.ID)
			env.Source = look
			return rlStarted{look.ID, look.Status, look.Environment, look.Config, ""}, err
		})
	rlTool("rl_get_results", "Shows the last metrics of a training run, and up to ten from before.", 0,
		func(_ context.Context, env *registry.Env, v *rl.View, args rlRun) (any, error) {
			r, err := v.Results(args.ID)
			env.Source = r.Look
			return map[string]any{"run_id": args.ID, "status": r.Status, "final_metrics": r.Last, "history": r.History, "points": r.Count}, err
		})
	rlTool("rl_list_runs", "Lists the training runs.", 0,
		func(_ context.Context, _ *registry.Env, v *rl.View, _ rlNone) (any, error) {
			looks, err := v.Trainings()
			runs := []rlStarted{}
			for _, look := range looks {
				runs = append(runs, rlStarted{look.ID, look.Status, look.Environment, look.Config, ""})
			}
			return map[string]any{"runs": runs, "count": len(runs)}, err
		})
	rlTool("rl_test_inference", "Plays a few tasks of the selected environment with models, and tells how well each does. "+
		"It shows whether an environment works, and is neither too easy nor too hard, before a training is started.", 2*time.Hour,
		func(ctx context.Context, env *registry.Env, v *rl.View, args rlTest) (any, error) {
			trial, err := v.Try(ctx, args.Models, args.Steps, args.Group)
			env.Source = struct {
				Asked []episode.Inquiry `json:"asked"`
			}{trial.Asked}
			return map[string]any{
				"results": trial.Tried, "num_steps": args.Steps, "group_size": args.Group, "summary": summaryOf(trial.Tried),
			}, err
		})
}

// summaryOf says which model did best.
func summaryOf(all []rl.Tried) string {
	best := -1
	for i, each := range all {
		if each.Accuracy != nil && (best < 0 || *each.Accuracy > *all[best].Accuracy) {
			best = i
		}
	}
	if best < 0 {
		return "No model gave a completion that was judged."
	}
	return all[best].Model + " did best."
}
