package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// What the written forms of a report show, before it is laid out for a page or a terminal.

// fact is a line of a report. An alert asks for a person's attention.
type fact struct {
	name, text string
	alert      bool
}

// table is a table of a report: the first column is text, and so is the last when wide; the others are numbers.
type table struct {
	title string
	head  []string
	wide  bool
	rows  []row
	more  int // rows that the report does not have
}

type row struct {
	cells []string
	alert bool
}

func (t *table) add(alert bool, cells ...string) { t.rows = append(t.rows, row{cells, alert}) }

// left says whether a column is text.
func (t table) left(column int) bool {
	return column == 0 || t.wide && column == len(t.head)-1
}

// filled are the tables that have rows.
func filled(tables ...table) []table {
	return slices.DeleteFunc(tables, func(t table) bool { return len(t.rows) == 0 })
}

// facts are the lines at the top.
func (r *Report) facts() []fact {
	facts := []fact{
		r.episodesFact(), r.spanFact(), named("dataset digest", r.Digest), named("seed", r.Seed),
		named("experiment", r.Fingerprint), named("trajgen", r.Version),
		{name: "reward", text: estimateText(r.Reward, decimal)},
		{name: "success rate", text: estimateText(r.SuccessRate, percent)},
		passFact("pass@k", r.PassAtK), passFact("pass^k", r.PassHatK), r.taskFact(), r.Tasks.Proofs.fact(), r.turnsFact(), r.driftFact(),
		{name: "stops", text: countsText(r.Stops)},
		r.Subagents.fact(), usageFact(r.Usage), r.costFact(), r.Cost.episodeCostFact(), r.Cost.Earlier.fact(), r.Budget.fact(),
		otherFact("user", r.User), otherFact("approver", r.Approver), r.fateFact(), r.timeFact(),
		{name: "model retries", text: faultsText(r.ModelRetries)},
		{name: "played again", text: faultsText(r.EarlierAttempts)},
		{name: "twins", text: r.Episodes.Twins.text()},
		named("unknown tools", countsText(r.UnknownTools)),
		named("where", r.Where), named("web replay", replayText(r.Web)),
		named("twin replay", replayText(r.Twin)),
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.name == "" })
}

// named is a fact with a text, or nothing.
func named(name, text string) fact {
	if text == "" {
		return fact{}
	}
	return fact{name: name, text: text}
}

func (r *Report) episodesFact() fact {
	e := r.Episodes
	f := fact{name: "episodes", text: Thousands(e.Present)}
	if e.Planned != nil {
		f.text += " of " + Thousands(*e.Planned) + " planned"
		if *e.Missing > 0 {
			f.text += ", " + Thousands(*e.Missing) + " MISSING"
			f.alert = true
		}
	}
	f.text += fmt.Sprintf("; %s tasks; %s judged, %s unjudged, %s ended in an error",
		Thousands(e.Tasks), Thousands(e.Judged), Thousands(e.Unjudged), Thousands(e.Errors))
	return f
}

func (r *Report) spanFact() fact {
	if r.Started == nil {
		return fact{}
	}
	return fact{name: "played", text: r.Started.Format(time.DateTime) + " to " + r.Ended.Format(time.DateTime) + " UTC"}
}

func (r *Report) turnsFact() fact {
	t := r.Turns
	if t.Mean == nil {
		return fact{}
	}
	return fact{name: "turns", text: fmt.Sprintf("mean %.1f, p50 %d, p95 %d, max %d", *t.Mean, *t.P50, *t.P95, *t.Max)}
}

func passFact(name string, rates []estimate.PassRate) fact {
	var parts []string
	for _, p := range rates {
		text := fmt.Sprintf("%d %s", p.K, percent(p.Value))
		if p.Low != nil {
			text += fmt.Sprintf(" [%s, %s]", percent(*p.Low), percent(*p.High))
		}
		parts = append(parts, text+fmt.Sprintf(" (%s of %s tasks)", Thousands(p.Tasks), Thousands(p.Of)))
	}
	return named(name, strings.Join(parts, ", "))
}

func usageFact(u TokenUsage) fact {
	f := fact{name: "tokens", text: "none reported"}
	if u.Turns > u.Unreported {
		f.text = fmt.Sprintf("prompt %s (cached %s), completion %s (reasoning %s)",
			Thousands(u.Prompt), Thousands(u.Cached), Thousands(u.Completion), Thousands(u.Reasoning))
	}
	if u.Unreported > 0 {
		f.text += fmt.Sprintf("; %s of %s turns reported no usage", Thousands(u.Unreported), Thousands(u.Turns))
		f.alert = true
	}
	return f
}

// otherFact says what a model used that is not the agent's, if there was one.
func otherFact(who string, u OtherUsage) fact {
	if u.Episodes == 0 {
		return fact{}
	}
	f := fact{name: who + " tokens", text: fmt.Sprintf("prompt %s, completion %s in %s episodes; not in the tokens above",
		Thousands(u.Prompt), Thousands(u.Completion), Thousands(u.Episodes))}
	if u.Unreported > 0 {
		f.text += fmt.Sprintf("; %s episodes without a count", Thousands(u.Unreported))
		f.alert = true
	}
	return f
}

// fateFact says what was done about calls, if anything was.
func (r *Report) fateFact() fact {
	var sum ToolStats
	for _, t := range r.Tools {
		sum.Stored, sum.Masked, sum.Shared = sum.Stored+t.Stored, sum.Masked+t.Masked, sum.Shared+t.Shared
		sum.Refused, sum.Approved = sum.Refused+t.Refused, sum.Approved+t.Approved
	}
	return named("calls", countsText(seen([]Count{
		{"refused", sum.Refused}, {"approved", sum.Approved}, {"stored", sum.Stored}, {"masked", sum.Masked}, {"shared", sum.Shared},
	})))
}

func (r *Report) costFact() fact {
	c := r.Cost
	f := fact{name: "cost", text: "unknown"}
	switch {
	case c.USD != nil:
		f.text = dollars(*c.USD)
	case c.KnownUSD != nil:
		f.text = fmt.Sprintf("unknown; at least %s (%s of %s turns unknown)", dollars(*c.KnownUSD), Thousands(c.UnknownTurns), Thousands(r.Usage.Turns))
	case r.Usage.Turns == 0:
		f.text = "no model turns"
	case r.Usage.Unreported == r.Usage.Turns:
		f.text = "unknown: no usage reported"
	default:
		f.text = "unknown: no price for the model"
	}
	var dates []string
	for _, m := range c.Models {
		if m.Price != nil && m.Price.Date != "" {
			dates = append(dates, m.Model+" as of "+m.Price.Date)
		}
	}
	if len(dates) > 0 {
		f.text += " (" + strings.Join(dates, ", ") + ")"
	}
	return f
}

func (r *Report) timeFact() fact {
	t := r.Time
	var parts []string
	if t.WallUS != nil {
		parts = append(parts, fmt.Sprintf("%s wall, %s episodes/s", micro(t.WallUS), significant(*t.PerSecond)))
	}
	if t.Episode.P50US != nil {
		parts = append(parts, fmt.Sprintf("episode p50 %s, p95 %s", micro(t.Episode.P50US), micro(t.Episode.P95US)))
	}
	if t.ModelShare != nil {
		parts = append(parts, fmt.Sprintf("%s waiting for the model, %s for tools", percent(*t.ModelShare), percent(*t.ToolShare)))
	}
	return fact{name: "time", text: cmp.Or(strings.Join(parts, "; "), "unknown")}
}

// tables are the parts below the lines.
func (r *Report) tables() []table {
	return filled(
		r.outcomeTable(),
		r.taskTable(),
		r.sweepTable(),
		groupTable("toolset combinations", r.Combinations),
		groupTable("toolsets", r.Toolsets),
		groupTable("tags", r.Tags),
		groupTable("difficulty", r.Difficulties),
		groupTable("with and without skills", r.Draw),
		r.skillTable(),
		r.toolTable(),
		r.faultTable(),
	)
}

func (r *Report) outcomeTable() table {
	t := table{title: "outcomes", head: []string{"outcome", "episodes", "share"}}
	for _, o := range r.Outcomes {
		share := "-"
		if r.Episodes.Present > 0 {
			share = percent(float64(o.Count) / float64(r.Episodes.Present))
		}
		t.add(o.Count > 0 && !o.Outcome.AgentsDoing(), string(o.Outcome), Thousands(o.Count), share)
	}
	if r.Episodes.Missing != nil && *r.Episodes.Missing > 0 {
		t.add(true, "(missing)", Thousands(*r.Episodes.Missing), "")
	}
	return t
}

func groupTable(title string, groups []Group) table {
	t := table{title: title, head: []string{"", "episodes", "judged", "tasks", "reward", "95 % interval"}}
	for _, g := range groups {
		t.add(false, g.Name, Thousands(g.Episodes), Thousands(g.Reward.N), Thousands(g.Reward.Tasks),
			number(g.Reward.Mean, decimal), intervalText(g.Reward, decimal))
	}
	return t
}

func (r *Report) toolTable() table {
	t := table{title: "tools", head: []string{"", "calls", "ok", "p50", "p95", "sandbox p50", "p95", "not ok"}, wide: true}
	for _, tool := range r.Tools {
		ok := 0
		var bad []Count
		for _, s := range tool.Statuses {
			if s.Name == string(episode.CallOK) {
				ok = s.Count
			} else {
				bad = append(bad, s)
			}
		}
		notes := countsText(bad)
		if len(tool.ErrorClasses) > 0 {
			notes += " (" + countsText(tool.ErrorClasses) + ")"
		}
		if tool.Nonzero > 0 {
			notes = strings.TrimPrefix(fmt.Sprintf("%s; exit code not 0: %s", notes, Thousands(tool.Nonzero)), "; ")
		}
		t.add(false, tool.Tool, Thousands(tool.Calls), percent(float64(ok)/float64(tool.Calls)),
			micro(tool.Elapsed.P50US), micro(tool.Elapsed.P95US), micro(tool.Sandbox.P50US), micro(tool.Sandbox.P95US), notes)
	}
	return t
}

func (r *Report) faultTable() table {
	t := table{title: "faults", head: []string{"outcome/class", "count", "example"}, wide: true}
	for _, f := range r.Faults {
		t.add(false, string(f.Outcome)+"/"+f.Class, Thousands(f.Count), f.Example)
	}
	return t
}

func estimateText(e estimate.Estimate, format func(float64) string) string {
	text := number(e.Mean, format)
	if e.Low != nil {
		text += "  95 % interval " + intervalText(e, format)
	}
	if e.N > 0 {
		text += fmt.Sprintf(" (n %s, %s tasks)", Thousands(e.N), Thousands(e.Tasks))
	}
	return text + asideText(e, format)
}

// asideText is what else there is to say of an estimate.
func asideText(e estimate.Estimate, format func(float64) string) (text string) {
	if i := e.FixedSuite; i != nil {
		text += fmt.Sprintf("; of these very tasks [%s, %s]", format(i.Low), format(i.High))
	}
	if b := e.Bounds; b != nil {
		text += fmt.Sprintf("; %s to %s if the %s unresolved had failed or succeeded", format(b.Low), format(b.High), Thousands(e.Unresolved))
	}
	if e.Note != "" {
		text += "; " + e.Note
	}
	return text
}

func intervalText(e estimate.Estimate, format func(float64) string) string {
	if e.Low == nil {
		return "-"
	}
	return "[" + format(*e.Low) + ", " + format(*e.High) + "]"
}

// number shows null as a dash.
func number(v *float64, format func(float64) string) string {
	if v == nil {
		return "-"
	}
	return format(*v)
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }
func dollars(v float64) string {
	if v != 0 && math.Abs(v) < 1 {
		return "$" + strconv.FormatFloat(v, 'g', 3, 64)
	}
	return "$" + strconv.FormatFloat(v, 'f', 2, 64)
}

// significant shows three digits that count, and all of a large number.
func significant(v float64) string {
	if math.Abs(v) >= 100 {
		return Thousands(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Thousands writes a number with commas between its thousands.
func Thousands[T int | int64](n T) string { return humanize.Comma(int64(n)) }

// micro shows a time with three digits that count.
func micro(us *int64) string {
	if us == nil {
		return "-"
	}
	d := time.Duration(*us) * time.Microsecond
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(*us, 10) + "µs"
	case d < time.Second:
		return strconv.FormatFloat(float64(*us)/1e3, 'g', 3, 64) + "ms"
	case d < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'g', 3, 64) + "s"
	}
	return d.Round(time.Second).String()
}

func countsText(list []Count) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, cmp.Or(c.Name, "(none)")+" "+Thousands(c.Count))
	}
	return strings.Join(parts, ", ")
}

// replayText is "" without a replay.
func replayText(r *Replays) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s calls answered from the recording (%s)", Thousands(r.Calls-r.Missed), Thousands(r.Calls), percent(r.HitShare))
}

func faultsText(list []FaultCount) string {
	var parts []string
	for _, f := range list {
		text := string(f.Outcome) + "/" + f.Class + " " + Thousands(f.Count)
		if pause := time.Duration(f.PauseUS) * time.Microsecond; pause >= time.Second {
			text += fmt.Sprintf(" (%s of pauses)", pause.Round(time.Second))
		}
		parts = append(parts, text)
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// title names the run.
func (r *Report) title() string {
	names := []string{cmp.Or(r.Name, "report"), r.Model, r.Dataset, r.Distribution}
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == "" }), " · ")
}

func (t Twins) text() string {
	if t.Played == 0 {
		return ""
	}
	return fmt.Sprintf("%s, %s could not follow their clean episode, %s ended in another error; %s tokens of what the two share were not paid again",
		Thousands(t.Played), Thousands(t.Diverged), Thousands(t.Errors), Thousands(int(t.PrefixTokens)))
}
