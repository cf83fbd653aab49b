package run

import (
	"context"
	"encoding/json"
	"os"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/cron"
	"trajgen/tools/web"
)

// cronServices are an episode's jobs, and the states that its checks see. With a registry, jobs name its toolsets.
func (f *File) cronServices(task *episode.Task, view *web.View, reg *registry.Registry) []any {
	jobs, err := f.Cron.View(task)
	if err != nil { // which the survey reports
		return nil
	}
	jobs.Inside = os.Getenv(cron.Variable) != ""
	if reg != nil {
		jobs.Toolsets = func(names []string) error {
			_, err := reg.Resolve(names, nil)
			return err
		}
	}
	return []any{states{view, jobs}, jobs}
}

// states are what checks of site_state see: the sites of the task and, as another, its jobs.
type states struct {
	sites *web.View
	jobs  *cron.View
}

// State is the state of a site.
func (s states) State(ctx context.Context, site string) (json.RawMessage, error) {
	if site == cron.State {
		return s.jobs.JSON(), nil
	}
	return s.sites.State(ctx, site)
}
