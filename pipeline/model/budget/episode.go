package budget

import "trajgen/pipeline/episode"

// OfEpisode is the reported spending of an episode: its turns, its earlier attempts, its summaries, and the models that its
// tools asked, that played its user and judged its commands. names are the run's names of these models.
func OfEpisode(ep *episode.Episode, prices episode.Prices, names Names) (sum Amount) {
	add := func(u episode.Usage, models ...string) {
		if u.Reported {
			_, price, _ := prices.Find(models...)
			sum = sum.Plus(Of(price, u))
		}
	}
	for i := range ep.Turns {
		if !ep.Paid(i) {
			continue
		}
		add(ep.Turns[i].Usage, ep.Billed(&ep.Turns[i], names.Agent)...)
	}
	for i := range ep.Earlier {
		add(ep.Earlier[i].Usage, ep.Billed(&episode.Turn{Model: ep.Model}, names.Agent)...)
	}
	for i := range ep.Compactions {
		if c := &ep.Compactions[i]; c.Usage != nil {
			add(*c.Usage, c.Model, c.Asked)
		}
	}
	ep.Inquired(add)
	if ep.User != nil && ep.User.Model != "" {
		add(ep.User.Usage, ep.User.Model, names.User)
	}
	for i := range ep.Calls {
		if v := ep.Calls[i].Verdict; v != nil && v.Usage != nil {
			add(*v.Usage, names.Approver)
		}
	}
	return sum
}

// Names are the models of a run.
type Names struct{ Agent, Summary, User, Approver, Web, Vision string }
