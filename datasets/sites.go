package datasets

import (
	"encoding/json"
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/tools/cron"
	"trajgen/tools/home/house"
	"trajgen/tools/messages/outbox"
	"trajgen/tools/web/sites"
)

func asSites(value json.RawMessage) ([]string, error) {
	names, err := asNames(value)
	if err == nil {
		err = sites.Check(names)
	}
	return names, err
}

// stateKeys are the keys of a check of a site's state.
var stateKeys = keys[episode.SiteState]{
	"site":   field(asPlain, func(s *episode.SiteState) *string { return &s.Site }),
	"expect": field(asPlain, func(s *episode.SiteState) *string { return &s.Expect }),
}

func readState(p *problems, check *episode.Check, at string, value json.RawMessage) {
	check.SiteState = &episode.SiteState{}
	if stateKeys.whole(p, check.SiteState, at, value) && (check.SiteState.Site == "" || check.SiteState.Expect == "") {
		p.addf("%s: it needs a site and what to expect of its state", at)
	}
}

// checkStates tries what is expected of sites, of the home and of messages with the states in which they begin: that finds misspelt
// names, and expressions that are about something that the agent has to make first.
func checkStates(p *problems, t *episode.Task) {
	for _, check := range t.Verify {
		var of, expect string
		var state json.RawMessage
		var err error
		switch {
		case check.SiteState != nil:
			of, expect = "site_state: with the state in which the site begins", check.SiteState.Expect
			state, err = firstState(t.Sites, check.SiteState.Site)
		case check.HomeState != "":
			of, expect = "home_state: with the state in which the home begins", check.HomeState
			state, err = firstHome(t.Home)
		case check.Outbox != "":
			of, expect = "outbox: before anything is sent", check.Outbox
			state, err = outbox.New(t.Channels).Outbox()
		default:
			continue
		}
		if err == nil {
			_, err = reward.Expect(expect, state)
		}
		if err != nil {
			p.addf("verify: %s: %v", of, err)
		}
	}
}

func asHome(value json.RawMessage) (json.RawMessage, error) {
	value = structured(value)
	_, err := house.Open(value)
	return value, err
}

func asChannels(value json.RawMessage) ([]string, error) {
	names, err := asNames(value)
	if err == nil {
		err = outbox.Check(names)
	}
	return names, err
}

func firstHome(what json.RawMessage) (json.RawMessage, error) {
	h, err := house.Open(what)
	if err != nil {
		return nil, err
	}
	return h.Judged()
}

// firstState is the state in which a site of a task begins.
func firstState(names []string, site string) (json.RawMessage, error) {
	if site == cron.State {
		return (&cron.View{}).JSON(), nil
	}
	for _, name := range names {
		if plain, _, _ := strings.Cut(name, ":"); plain != site {
			continue
		}
		set, err := sites.Open([]string{name})
		if err != nil {
			return nil, err
		}
		return set.State(site)
	}
	return nil, fmt.Errorf("the task has no site %q (its sites are %v)", site, names)
}
