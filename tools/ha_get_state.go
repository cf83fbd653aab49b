package tools

import (
	"context"

	"trajgen/registry"
)

func init() {
	get := homeTool("ha_get_state", "Tells the state of one device or sensor of the home with all its attributes, such as brightness or temperature.")
	get.Access, get.ReadOnly = untouched, true
	add(registry.Define(get, haGetState))
}

type haGetStateArgs struct {
	Entity string `json:"entity_id" alias:"entity" doc:"The entity, such as light.kitchen_ceiling." minlen:"1" maxlen:"255"`
}

func haGetState(ctx context.Context, env *registry.Env, args haGetStateArgs) (any, error) {
	if !entityForm.MatchString(args.Entity) {
		return nil, badEntity(args.Entity)
	}
	view, about, err := homeView(env)
	if err != nil {
		return nil, err
	}
	state, err := view.State(ctx, args.Entity)
	if err != nil {
		return nil, sourceFailure(err)
	}
	for _, value := range state.Attributes {
		if text, ok := value.(string); ok {
			about.Threats = suspect(about.Threats, text)
		}
	}
	return haResult[any]{state}, nil
}
