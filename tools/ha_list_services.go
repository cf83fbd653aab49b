package tools

import (
	"context"
	"slices"

	"trajgen/registry"
	"trajgen/tools/home/house"
)

func init() {
	list := homeTool("ha_list_services", "Lists what ha_call_service can call, by domain, with the data that each service takes.")
	list.Access, list.ReadOnly = untouched, true
	add(registry.Define(list, haListServices))
}

type haListServicesArgs struct {
	Domain string `json:"domain,omitempty" doc:"One domain, such as light; all without it." maxlen:"100"`
}

type haService struct {
	Description string            `json:"description"`
	Fields      map[string]string `json:"fields,omitempty"`
}

type haDomain struct {
	Domain   string               `json:"domain"`
	Services map[string]haService `json:"services"`
}

type haDomains struct {
	Count   int        `json:"count"`
	Domains []haDomain `json:"domains"`
}

func haListServices(ctx context.Context, env *registry.Env, args haListServicesArgs) (any, error) {
	view, _, err := homeView(env)
	if err != nil {
		return nil, err
	}
	all, err := view.Services(ctx)
	if err != nil {
		return nil, sourceFailure(err)
	}
	found := haDomains{Domains: []haDomain{}}
	for _, d := range all {
		if args.Domain != "" && d.Domain != args.Domain || slices.Contains(blockedDomains, d.Domain) {
			continue
		}
		found.Domains = append(found.Domains, haDomain{d.Domain, described(d)})
	}
	found.Count = len(found.Domains)
	return haResult[haDomains]{found}, nil
}

func described(d house.Domain) map[string]haService {
	services := map[string]haService{}
	for name, s := range d.Services {
		shown := haService{s.Description, map[string]string{}}
		for field, about := range s.Fields {
			shown.Fields[field] = about.Description
		}
		services[name] = shown
	}
	return services
}
