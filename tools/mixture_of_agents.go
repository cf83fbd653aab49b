package tools

import (
	"context"
	"encoding/json"
	"errors"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
	"trajgen/tools/moa"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "mixture_of_agents", Toolset: "moa", NoSandbox: true, Timeout: moa.CallTime,
		Access: func(json.RawMessage) registry.Access { return registry.Access{} },
		Description: "Asks several language models at once and returns one answer that is made of theirs. Use it for problems that need " +
			"hard thinking, such as a proof or an algorithm. The models see nothing but the prompt.",
	}, mixtureOfAgents))
}

type mixtureArgs struct {
	Prompt string `json:"user_prompt" alias:"prompt,question,query" doc:"The problem, with all that is needed to solve it." minlen:"1" maxlen:"200000"`
}

type mixtureResult struct {
	Success  bool       `json:"success"`
	Response string     `json:"response"`
	Models   modelsUsed `json:"models_used"`
}

type modelsUsed struct {
	References []string `json:"reference_models"`
	Aggregator string   `json:"aggregator_model"`
}

func mixtureOfAgents(ctx context.Context, env *registry.Env, args mixtureArgs) (any, error) {
	mixture, ok := registry.Service[*moa.Mixture](env.Session)
	if !ok {
		return nil, registry.Failf("no_models", "this episode has no models to ask")
	}
	answer, about, err := mixture.Answer(ctx, args.Prompt)
	env.Source = about
	used := modelsUsed{References: []string{}, Aggregator: mixture.Settings.Aggregator.Model}
	for _, said := range about.Asked[:len(mixture.Settings.References)] {
		if said.Asked != "" && said.Failed == "" {
			used.References = append(used.References, said.Asked)
		}
	}
	failed := &registry.Failure{
		Class: "moa", Status: episode.CallUnavailable, Extra: map[string]any{"success": false, "response": "", "models_used": used},
	}
	few, isFew := errors.AsType[*moa.Few](err)
	fatal, isFatal := errors.AsType[*model.Error](err)
	switch {
	case err == nil:
		return mixtureResult{true, answer, used}, nil
	case isFew:
		failed.Message = few.Error()
	case isFatal:
		failed.Message, failed.Broken = "the models cannot be asked: "+fatal.Error(), true
	default:
		return nil, err
	}
	return nil, failed
}
