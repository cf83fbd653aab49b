package tools

import (
	"context"
	"maps"
	"slices"
	"strings"

	"trajgen/registry"
	"trajgen/tools/home/house"
)

func init() {
	list := homeTool("ha_list_entities", "Lists the devices and sensors of the home with their states, of one domain or one area if that is given.")
	list.Access, list.ReadOnly = untouched, true
	add(registry.Define(list, haListEntities))
}

type haListEntitiesArgs struct {
	Domain string `json:"domain,omitempty" doc:"Kind of entity, such as light, switch, climate, cover, sensor." maxlen:"100"`
	Area   string `json:"area,omitempty" alias:"room" doc:"Name of an area, such as Kitchen." maxlen:"100"`
}

type haEntity struct {
	ID    string `json:"entity_id"`
	State string `json:"state"`
	Name  string `json:"friendly_name"`
}

type haEntities struct {
	Count    int        `json:"count"`
	Entities []haEntity `json:"entities"`
}

type haResult[T any] struct {
	Result T `json:"result"`
}

func haListEntities(ctx context.Context, env *registry.Env, args haListEntitiesArgs) (any, error) {
	view, about, err := homeView(env)
	if err != nil {
		return nil, err
	}
	states, err := view.States(ctx)
	if err != nil {
		return nil, sourceFailure(err)
	}
	there := func(house.State) bool { return true }
	if args.Area != "" {
		areas, err := view.Areas(ctx)
		if err != nil {
			return nil, sourceFailure(err)
		}
		same := func(area string) bool { return house.SameArea(args.Area, area) }
		all := slices.Compact(slices.Sorted(maps.Values(areas)))
		if !slices.ContainsFunc(all, same) {
			return nil, registry.Failf("no_area", "the home has no area %.100q (have %s)", args.Area, strings.Join(all, ", "))
		}
		there = func(s house.State) bool { return same(areas[s.ID]) }
	}
	found := haEntities{Entities: []haEntity{}}
	for _, s := range states {
		if domain, _, _ := strings.Cut(s.ID, "."); (args.Domain == "" || domain == args.Domain) && there(s) {
			name, _ := s.Attributes["friendly_name"].(string)
			about.Threats = suspect(about.Threats, name, s.State)
			found.Entities = append(found.Entities, haEntity{s.ID, s.State, name})
		}
	}
	found.Count = len(found.Entities)
	return haResult[haEntities]{found}, nil
}
