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
	"regexp"
	"slices"
	"strings"

	"trajgen/outputs/journal"
	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
)

// Budget has the prices of models, and how much the run may spend on them.
type Budget struct {
	USD               float64        `yaml:"usd,omitempty" flag:"budget-usd" experiment:"no" help:"most that the run may spend on models, resumed parts included; it stops cleanly and can be resumed with more (default: no limit)"`
	Tokens            int            `yaml:"tokens,omitempty" flag:"budget-tokens" experiment:"no" help:"prompt and completion tokens of the run, at most, likewise (default: no limit)"`
	Prices            episode.Prices `yaml:"prices,omitempty" experiment:"no"` // by model, USD per million tokens
	PricesFile        string         `yaml:"prices_file,omitempty" experiment:"no" help:"YAML file with prices: date, and models: {NAME: {input, output, cached_input}} in USD per million tokens"`
	PricesDate        string         `yaml:"prices_date,omitempty" experiment:"no" help:"when the prices of the run file were looked up, YYYY-MM-DD"`
	AllowUnknownPrice bool           `yaml:"allow_unknown_price,omitempty" experiment:"no" help:"start with a budget in USD although a model has no price; what it costs is in no budget"`
}

// spendFile is where a run directory keeps what was spent.
const spendFile = "spend.jsonl"

// priceFile is a file of prices.
type priceFile struct {
	Date   string         `yaml:"date"`
	Models episode.Prices `yaml:"models"`
}

// loadPrices adds the prices of a file to those of the run file, which win. The run directory then records all of them.
func (f *File) loadPrices() error {
	all := maps.Clone(f.Budget.Prices)
	if all == nil {
		all = episode.Prices{}
	}
	if f.Budget.PricesFile != "" {
		from, err := readPrices(f.Budget.PricesFile)
		if err != nil {
			return err
		}
		for name, price := range from.Models {
			price.Date = cmp.Or(price.Date, from.Date)
			if _, given := all[name]; !given {
				all[name] = price
			}
		}
	}
	for name, price := range all {
		price.Date = cmp.Or(price.Date, f.Budget.PricesDate)
		all[name] = price
	}
	if len(all) > 0 {
		f.Budget.Prices = all
	}
	f.Budget.PricesFile, f.Budget.PricesDate = "", ""
	return f.checkPrices()
}

func readPrices(path string) (priceFile, error) {
	var prices priceFile
	if err := Decode(path, "a file of prices", &prices); err != nil {
		return prices, err
	}
	if prices.Date == "" || len(prices.Models) == 0 {
		return prices, fmt.Errorf("prices %s: want date: YYYY-MM-DD, the day they were looked up, and models: {NAME: {input: X, output: X, cached_input: X}} in USD per million tokens", path)
	}
	return prices, nil
}

var day = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)

func (f *File) checkPrices() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.Budget.Prices)) {
		p := f.Budget.Prices[name]
		if !(p.Input >= 0 && p.Output >= 0 && p.CachedInput >= 0) {
			errs = append(errs, fmt.Errorf("prices of %s: not below 0", name))
		}
		if p.Date != "" && !day.MatchString(p.Date) {
			errs = append(errs, fmt.Errorf("date of the prices of %s is %q; YYYY-MM-DD", name, p.Date))
		}
	}
	if f.Budget.PricesDate != "" && !day.MatchString(f.Budget.PricesDate) {
		errs = append(errs, fmt.Errorf("prices_date is %q; YYYY-MM-DD", f.Budget.PricesDate))
	}
	return errors.Join(errs...)
}

// checkBudget says what is wrong with the keys about money and tokens.
func (f *File) checkBudget() error {
	errs := []error{f.checkPrices()}
	if f.Limits.Tokens > 0 && f.Model.MaxTokens >= f.Limits.Tokens {
		errs = append(errs, fmt.Errorf("limits.tokens is %d and model.max_tokens %d: one reply could take it all; raise the one or lower the other", f.Limits.Tokens, f.Model.MaxTokens))
	}
	return errors.Join(errs...)
}

// models are the names of all models that the run may ask.
func (f *File) models() budget.Names {
	agent := f.Model.Name
	if f.Scripted.Policy != "" {
		agent = cmp.Or(agent, "scripted-"+f.Scripted.Policy)
	}
	return budget.Names{Agent: agent, Summary: f.Context.SummaryModel, User: f.User.Model, Approver: f.Commands.ApproverModel}
}

// agents are the names of all models that may play an episode.
func (f *File) agents() []string {
	names := f.Sweep.names()
	if len(names) == 0 {
		names = []string{f.models().Agent}
	}
	for _, next := range f.Model.Fallbacks {
		names = append(names, next.Model)
	}
	return names
}

// openBudget opens the ledger of a run that has a budget, or had one before a resume.
func (m *models) openBudget(context.Context) error {
	f := &m.File
	if err := f.loadPrices(); err != nil {
		return err
	}
	names := f.models()
	all := append(f.agents(), names.Summary, names.User, names.Approver)
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
	for _, name := range append(f.agents(), names.Summary) { // the models in an episode's cost
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

// attachBudget continues with the spending of the run directory. Without a ledger there, that is the sum over its episodes;
// spending on episodes that are not in the journal is then unknown.
func (m *models) attachBudget(ctx context.Context, dir string) error {
	if m.ledger == nil {
		return nil
	}
	return m.ledger.Attach(filepath.Join(dir, spendFile), func() (budget.Amount, error) { return m.journaled(ctx, dir) })
}

// journaled is the spending that the episodes of a run directory report.
func (m *models) journaled(ctx context.Context, dir string) (sum budget.Amount, err error) {
	reader, err := journal.OpenReader(JournalDir(dir))
	if err != nil {
		return sum, err
	}
	defer reader.Close()
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return sum, err
		}
		sum = sum.Plus(budget.OfEpisode(ep, m.File.Budget.Prices, m.File.models()))
	}
	return sum, nil
}

// broke is the error of a budget that has refused a request.
func (m *models) broke() error {
	if m.ledger == nil {
		return nil
	}
	if reached := m.ledger.Reached(); reached != nil {
		return reached
	}
	return nil
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
