package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"trajgen/registry"
)

func init() {
	add(registry.Define(homeTool("ha_call_service", "Calls a service of the home, such as light.turn_on, for one entity or for those that the "+
		"data names. ha_list_services tells the services and ha_list_entities the entities."), haCallService))
}

type haCallServiceArgs struct {
	Domain  string `json:"domain" doc:"Domain of the service, such as light." minlen:"1" maxlen:"100"`
	Service string `json:"service" doc:"The service, such as turn_on." minlen:"1" maxlen:"100"`
	Entity  string `json:"entity_id,omitempty" alias:"entity" doc:"The entity that it is for." maxlen:"255"`
	Data    string `json:"data,omitempty" doc:"Further data of the service: a JSON object as a string." example:"{\"brightness\": 128}" maxlen:"10000"`
}

// blockedDomains run programs or send requests from the machine of the home.
var blockedDomains = strings.Fields("command_line hassio pyscript python_script rest_command shell_command")

type affected struct {
	ID    string `json:"entity_id"`
	State string `json:"state"`
}

type haCalled struct {
	Success  bool            `json:"success"`
	Service  string          `json:"service"`
	Affected []affected      `json:"affected_entities"`
	Response json.RawMessage `json:"service_response,omitempty"`
}

func haCallService(ctx context.Context, env *registry.Env, args haCallServiceArgs) (any, error) {
	switch {
	case !serviceForm.MatchString(args.Domain) || !serviceForm.MatchString(args.Service):
		return nil, registry.Failf("bad_service", "%.100q and %.100q are not a domain and a service such as light and turn_on", args.Domain, args.Service)
	case slices.Contains(blockedDomains, args.Domain):
		return nil, denied("services of the domain %s are blocked, as they act on the machine of the home (blocked: %s)", args.Domain,
			strings.Join(blockedDomains, ", "))
	case args.Entity != "" && !entityForm.MatchString(args.Entity):
		return nil, badEntity(args.Entity)
	}
	data := map[string]any{}
	if strings.TrimSpace(args.Data) != "" {
		if err := json.Unmarshal([]byte(args.Data), &data); err != nil || data == nil {
			return nil, registry.Failf("bad_data", "data is not a JSON object in a string: %v", err)
		}
	}
	if args.Entity != "" {
		data["entity_id"] = args.Entity
	}
	view, about, err := homeView(env)
	if err != nil {
		return nil, err
	}
	did, err := view.Call(ctx, env.CallID, args.Domain, args.Service, data)
	if err != nil {
		return nil, sourceFailure(err)
	}
	result := haCalled{Success: true, Service: args.Domain + "." + args.Service, Affected: []affected{}, Response: did.Response}
	for _, s := range did.States {
		result.Affected = append(result.Affected, affected{s.ID, s.State})
	}
	about.Affected = result.Affected
	return haResult[haCalled]{result}, nil
}
