// Package progress shows how far a run, and other long work, has come.
package progress

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// Run shows the progress of a run: a bar in a terminal, otherwise a line from time to time.
type Run struct {
	w     io.Writer
	now   func() time.Time
	every time.Duration // between lines, and between looks at what the run waits for

	Logger *slog.Logger         // that lines go to; nil prints them
	Held   func() time.Duration // how long requests have waited for this process's processors; nil if not measured

	mu       sync.Mutex // guards the fields below
	bar      *progressbar.ProgressBar
	what     string // is played: episodes, or twins of them
	total    int
	done     int // finished and skipped
	finished int
	retried  int
	outcomes map[episode.Outcome]int
	paused   string        // what the run waits for
	heldThen time.Duration // held at the last line
	busy     bool          // requests waited for processors most of the time since the last line
	unread   bool          // warned of calls that the server leaves in the text
	began    time.Time
	lined    time.Time
}

// New starts. With a bar, log lines must go through the returned Run, which clears the bar first.
func New(w io.Writer, total int, bar bool, width int, now func() time.Time) *Run {
	p := &Run{w: w, now: now, every: 10 * time.Second, lined: now()}
	p.begin("episodes", total)
	if bar {
		p.every = time.Second
		p.bar = newBar(w, total, width, 70, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("ep"),
			progressbar.OptionSetPredictTime(false), // prints two times without labels
			progressbar.OptionFullWidth(),
			progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: "", BarEnd: ""}),
		)
		_ = p.bar.RenderBlank()
	}
	return p
}

// begin begins to count.
func (p *Run) begin(what string, total int) {
	p.what, p.total, p.began = what, total, p.now()
	p.done, p.finished, p.retried, p.outcomes = 0, 0, 0, map[episode.Outcome]int{}
}

// newBar makes a bar in a terminal, with so many columns for words; a total of -1 is unknown.
func newBar(w io.Writer, total, width, words int, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions(total, append(more, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(max(10, min(30, width-words))),
		progressbar.OptionThrottle(100*time.Millisecond))...)
}

// Count makes a bar that counts things of a unit in a terminal: one more at each call. A total of -1 is unknown.
func Count(w io.Writer, total, width int, unit string) (one, clear func()) {
	bar := newBar(w, total, width, 50, progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(unit), progressbar.OptionClearOnFinish())
	return func() { _ = bar.Add(1) }, func() { _ = bar.Clear() }
}

// Observe takes a pipeline's events.
func (p *Run) Observe(event pipeline.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warn(event.Episode)
	switch event.Kind {
	case pipeline.EpisodeFinished:
		p.finished++
		p.done++
		p.outcomes[event.Episode.Outcome]++
	case pipeline.EpisodeSkipped:
		p.done++
	case pipeline.EpisodeRetried:
		p.retried++
		return
	case pipeline.TwinsPlanned:
		p.twins(event.Twins)
		return
	default:
		return
	}
	now := p.now()
	due := now.Sub(p.lined) >= p.every
	if due {
		p.look(now)
		p.lined = now
	}
	switch {
	case p.bar != nil:
		p.bar.Describe(p.described(now))
		_ = p.bar.Add(1)
	case due:
		p.line(now)
	}
}

// twins ends the count of episodes and begins that of their twins.
func (p *Run) twins(total int) {
	p.end()
	p.begin("twins", total)
	if p.bar != nil {
		p.bar.Reset()
		p.bar.ChangeMax(max(total, 1)) // a bar over nothing has an unknown end
		p.bar.Describe(p.described(p.began))
	}
}

// described says in a bar what it counts, the times and the outcomes.
func (p *Run) described(now time.Time) string { return p.what + " " + p.times(now) + ": " + p.tally() }

// look finds out whether the run waits for this process's processors.
func (p *Run) look(now time.Time) {
	if p.Held == nil {
		return
	}
	held := p.Held()
	p.busy = held-p.heldThen > now.Sub(p.lined)/2
	p.heldThen = held
}

// line prints one line of progress where there is no terminal.
func (p *Run) line(now time.Time) {
	rate, left := p.pace(now)
	if p.Logger != nil {
		p.Logger.Info("progress", "of", p.what, "done", p.done, "total", p.total, "per_second", fmt.Sprintf("%.1f", rate), "left", left, "outcomes", p.tally())
		return
	}
	fmt.Fprintf(p.w, "%d of %d %s, %.1f/s, %s: %s\n", p.done, p.total, p.what, rate, p.times(now), p.tally())
}

// pace is the episodes per second, and the time that the rest would take.
func (p *Run) pace(now time.Time) (rate float64, left string) {
	rate = float64(p.finished) / now.Sub(p.began).Seconds()
	if !(rate > 0) {
		return 0, "unknown"
	}
	return rate, (time.Duration(float64(p.total-p.done)/rate) * time.Second).String()
}

// times describe the elapsed and the remaining time.
func (p *Run) times(now time.Time) string {
	_, left := p.pace(now)
	return fmt.Sprintf("%s elapsed, %s left", now.Sub(p.began).Truncate(time.Second), left)
}

// Outage takes changes of outages. Their beginning and end get a line at once, unless a bar shows them; changes in between are shown
// with the next line.
func (p *Run) Outage(open []model.Outage, news model.Outage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []string
	for _, o := range open {
		parts = append(parts, fmt.Sprintf("%s, since %s; trying again in %s", o, o.Since.Format(time.TimeOnly), shortly(o.Next.Sub(p.now()))))
	}
	was := p.paused
	p.paused = strings.Join(parts, "; ")
	now := p.now()
	switch {
	case p.bar != nil:
		p.bar.Describe(p.described(now))
		_ = p.bar.RenderBlank()
	case news.Over:
		p.say("the run goes on: "+news.Endpoint+" answers again", "endpoint", news.Endpoint, "after", now.Sub(news.Since).Round(time.Second).String())
	case was == "" || now.Sub(p.lined) >= p.every:
		p.lined = now
		p.say("paused: "+p.paused, "endpoint", news.Endpoint, "reason", news.Reason, "since", news.Since, "next", news.Next)
	}
}

// warn prints once a warning about a mistake that makes the whole run useless, and that one word in the run file corrects.
func (p *Run) warn(ep *episode.Episode) {
	if p.unread || ep == nil || ep.Fault == nil || ep.Fault.Class != model.ClassUnread {
		return
	}
	p.unread = true
	if p.bar != nil {
		_ = p.bar.Clear()
		defer func() { _ = p.bar.RenderBlank() }()
	}
	p.say("an episode ended in a model_error: "+ep.Fault.Message, "id", ep.ID, "class", ep.Fault.Class, "said", ep.Fault.Message)
}

// say prints a line, or a log line with its attributes if the user chose those.
func (p *Run) say(text string, attrs ...any) {
	if p.Logger != nil {
		message, _, _ := strings.Cut(text, ":")
		p.Logger.Warn(message, attrs...)
		return
	}
	fmt.Fprintln(p.w, text)
}

// shortly rounds a remaining time for people.
func shortly(d time.Duration) time.Duration {
	if d < time.Second {
		return max(d, 0).Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// tally is the outcomes so far, in their order, those that occurred.
func (p *Run) tally() string {
	var parts []string
	for _, outcome := range episode.Outcomes() {
		if n := p.outcomes[outcome]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	if p.retried > 0 {
		parts = append(parts, fmt.Sprintf("%d retried", p.retried))
	}
	if p.busy {
		parts = append(parts, "requests wait for this machine's processors")
	}
	if p.paused != "" && p.bar != nil {
		parts = append(parts, "paused: "+p.paused)
	}
	return strings.Join(parts, ", ")
}

// Write prints a log line without damaging the bar.
func (p *Run) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
		defer func() { _ = p.bar.RenderBlank() }()
	}
	return p.w.Write(data)
}

// End leaves the bar as it stands, on a line of its own.
func (p *Run) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

// end leaves the bar, or a line, as it stands.
func (p *Run) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		fmt.Fprintln(p.w)
		return
	}
	p.line(p.now())
}
