package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/outputs/journal"
	"trajgen/outputs/report"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
)

// spendFile is where a run directory keeps what was spent.
const spendFile = "spend.jsonl"

// models are the names of all models that the run may ask.
func (f *File) models() budget.Names {
	agent := f.Model.Name
	if f.Scripted.Policy != "" {
		agent = cmp.Or(agent, "scripted-"+f.Scripted.Policy)
	}
	return budget.Names{Agent: agent, Summary: f.Context.SummaryModel, User: f.User.Model, Approver: f.Commands.ApproverModel, Web: f.Web.Summary.Model, Vision: f.Media.VisionModel}
}

// agents are the names of all models that may play an episode.
func (f *File) agents() []string {
	names := f.Sweep.names()
	if len(names) == 0 {
		names = []string{f.models().Agent}
	}
	return append(names, f.Model.FallbackNames()...)
}

// purse is what the run may spend on models and media, and has spent.
type purse struct {
	*opened
	ledger *budget.Ledger // nil without a budget
}

// openBudget opens the ledger of a run that has a budget, or had one before a resume.
func (m *purse) openBudget(context.Context) error {
	f := &m.File
	decode := func(path string, into any) error { return Decode(path, "a file of prices", into) }
	if err := f.Budget.Load(decode); err != nil { // the run directory then records all prices
		return err
	}
	names, paid := f.models(), f.Media.Paid()
	inEpisode := append(f.agents(), names.Summary, names.Web, names.Vision) // the models in an episode's cost
	for _, mixed := range f.MOA.All() {
		inEpisode = append(inEpisode, mixed.Model)
	}
	tested := slices.Sorted(maps.Keys(f.RL.Models))
	for _, name := range tested {
		inEpisode = append(inEpisode, f.RL.Models[name].Name)
	}
	all := append(slices.Clone(inEpisode), names.User, names.Approver)
	for _, made := range paid {
		all = append(all, made.Model)
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == "" })
	_, err := os.Stat(filepath.Join(f.OutDir(), spendFile))
	if limited := f.Budget.USD > 0 || f.Budget.Tokens > 0; limited || f.resumed && err == nil {
		m.ledger, err = budget.Open(budget.Config{
			Tokens: int64(f.Budget.Tokens), USD: f.Budget.USD, Prices: f.Budget.Prices, AllowUnknownPrice: f.Budget.AllowUnknownPrice, Logger: m.Logger,
		})
		if err != nil {
			return err
		}
		if err := m.ledger.Priced(all...); err != nil {
			return fmt.Errorf("%w: give it with --prices-file or under prices, or say allow_unknown_price: true and leave it out of the budget", err)
		}
	}
	var errs []error
	for _, name := range tested {
		if f.RL.Models[name].Tokens == 0 && m.ledger != nil {
			errs = append(errs, fmt.Errorf("a budget needs to know what a test of a model may use: say rl: {models: {%s: {tokens: N}}}", name))
		}
	}
	for _, made := range paid {
		inEpisode = append(inEpisode, made.Model)
		if _, price, known := f.Budget.Prices.Find(made.Model); known && !made.In(price) {
			errs = append(errs, fmt.Errorf("the price of %s has nothing for what it makes (want %s)", made.Model, made.By))
		}
	}
	for _, name := range inEpisode {
		if _, _, known := f.Budget.Prices.Find(name); f.Limits.USD > 0 && name != "" && !known && !f.Budget.AllowUnknownPrice {
			errs = append(errs, fmt.Errorf("episode_usd needs the price of %s: give it with --prices-file or under prices", name))
		}
	}
	return errors.Join(errs...)
}

// pay makes the ledger pay for a model's requests. A replay costs nothing.
func (m *models) pay(cfg *model.Config) {
	if m.ledger != nil && m.replay == nil {
		cfg.Meter = m.ledger
	}
}

// bounded checks that the longest reply of the agent is known, as a budget needs it. It is called when the probes have found out
// the models' windows.
func (m *models) bounded() error {
	f := m.File
	if m.sampling.MaxTokens > 0 || f.Budget.USD == 0 && f.Budget.Tokens == 0 || m.replay != nil {
		return nil
	}
	for _, client := range m.clients {
		if client.Window() == 0 {
			return errors.New("a budget needs to know how long a reply can be, and the server does not say: give --max-tokens N, or the model's --context-window N")
		}
	}
	return nil
}

// journaled is the spending that the episodes of a run directory report; that on episodes which are not in the journal is unknown.
func (m *purse) journaled(ctx context.Context, dir string) (sum budget.Amount, err error) {
	reader, err := journal.OpenReader(JournalDir(dir))
	if err != nil {
		return sum, err
	}
	defer reader.Close()
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return sum, err
		}
		for each := range ep.Tree() {
			sum = sum.Plus(budget.OfEpisode(each, m.File.Budget.Prices, m.File.models()))
		}
	}
	return sum, nil
}

// broke is the error of a budget that has refused a request.
func (m *purse) broke() error {
	if m.ledger == nil || m.ledger.Reached() == nil { // a nil pointer would make a non-nil error
		return nil
	}
	return m.ledger.Reached()
}

// More names the flags that raise a budget that was reached.
func More(reached *budget.Reached) string {
	var flags []string
	if reached.Limit.Nano > 0 {
		flags = append(flags, "--budget-usd")
	}
	if reached.Limit.Tokens > 0 {
		flags = append(flags, "--budget-tokens")
	}
	return strings.Join(flags, " or ")
}

// Spending is the spending that a run directory records; nil without a budget.
func Spending(dir string, m Manifest) (*report.Budget, error) {
	path := filepath.Join(dir, spendFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	spent, _, err := budget.Read(path)
	if err != nil {
		return nil, err
	}
	return &report.Budget{SpentUSD: spent.USD(), SpentTokens: spent.Tokens, USD: m.RunFile.Budget.USD, Tokens: int64(m.RunFile.Budget.Tokens)}, nil
}
