package run

import (
	"context"
	"encoding/json"

	"trajgen/tools/cron"
	"trajgen/tools/web"
)

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
