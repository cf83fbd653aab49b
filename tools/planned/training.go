package planned

import "trajgen/registry"

const trainingToolset = "rl"

type runID struct {
	RunID string `json:"run_id" doc:"Which run, as rl_start_training names it."`
}

func training() []registry.Tool {
	keys := []string{"TINKER_API_KEY", "WANDB_API_KEY"}
	return []registry.Tool{
		entry[none](trainingToolset, "rl_list_environments", "List the environments that a model can be trained in.", keys...),
		entry[struct {
			Name string `json:"name" doc:"Name of the environment."`
		}](trainingToolset, "rl_select_environment", "Choose the environment and begin with its default configuration.", keys...),
		entry[none](trainingToolset, "rl_get_current_config", "Show the configuration, and what of it can be changed.", keys...),
		entry[struct {
			Field string `json:"field" doc:"Which setting."`
			Value any    `json:"value" doc:"What it becomes."`
		}](trainingToolset, "rl_edit_config", "Change a setting.", keys...),
		entry[none](trainingToolset, "rl_start_training", "Start a training run.", keys...),
		entry[runID](trainingToolset, "rl_check_status", "How a run is doing. Ask at most every 30 minutes.", keys...),
		entry[runID](trainingToolset, "rl_stop_training", "Stop a run.", keys...),
		entry[runID](trainingToolset, "rl_get_results", "What came of a run.", keys...),
		entry[none](trainingToolset, "rl_list_runs", "List the runs.", keys...),
		entry[struct {
			Steps     int      `json:"num_steps,omitempty" doc:"Steps." default:"3" min:"1"`
			GroupSize int      `json:"group_size,omitempty" doc:"Answers to each prompt." default:"16" min:"1"`
			Models    []string `json:"models,omitempty" doc:"Models to try (default: three of different size)."`
		}](trainingToolset, "rl_test_inference", "Try the environment with models before a run.", keys...),
	}
}
