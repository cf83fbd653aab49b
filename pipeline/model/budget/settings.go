package budget

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"trajgen/pipeline/episode"
)

// Settings have the prices of models, and how much a run may spend on them, as in the run file.
type Settings struct {
	USD               float64        `yaml:"usd,omitempty" flag:"budget-usd" experiment:"no" help:"most that the run may spend on models, resumed parts included; it stops cleanly and can be resumed with more (default: no limit)"`
	Tokens            int            `yaml:"tokens,omitempty" flag:"budget-tokens" experiment:"no" help:"prompt and completion tokens of the run, at most, likewise (default: no limit)"`
	Prices            episode.Prices `yaml:"prices,omitempty" experiment:"no"` // by model, USD; see episode.Price
	PricesFile        string         `yaml:"prices_file,omitempty" experiment:"no" help:"YAML file with prices: date, and models: {NAME: {input, output, cached_input}} in USD per million tokens"`
	PricesDate        string         `yaml:"prices_date,omitempty" experiment:"no" help:"when the prices of the run file were looked up, YYYY-MM-DD"`
	AllowUnknownPrice bool           `yaml:"allow_unknown_price,omitempty" experiment:"no" help:"start with a budget in USD although a model has no price; what it costs is in no budget"`
}

// day is how dates of prices begin.
var day = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Prices)) {
		p := s.Prices[name]
		for _, amount := range p.Amounts() {
			if !(amount >= 0) {
				errs = append(errs, fmt.Errorf("prices of %s: not below 0", name))
				break
			}
		}
		if p.Date != "" && !day.MatchString(p.Date) {
			errs = append(errs, fmt.Errorf("date of the prices of %s is %q; YYYY-MM-DD", name, p.Date))
		}
	}
	if s.PricesDate != "" && !day.MatchString(s.PricesDate) {
		errs = append(errs, fmt.Errorf("prices_date is %q; YYYY-MM-DD", s.PricesDate))
	}
	return errors.Join(errs...)
}

// Load adds the prices of PricesFile to Prices, which win, and gives each its date. decode reads a file of YAML.
func (s *Settings) Load(decode func(path string, into any) error) error {
	all := episode.Prices{}
	if path := s.PricesFile; path != "" {
		var from struct {
			Date   string         `yaml:"date"`
			Models episode.Prices `yaml:"models"`
		}
		if err := decode(path, &from); err != nil {
			return err
		}
		if from.Date == "" || len(from.Models) == 0 {
			return fmt.Errorf("prices %s: want date: YYYY-MM-DD, the day they were looked up, and models: {NAME: {input: X, output: X, cached_input: X}} in USD per million tokens", path)
		}
		for name, price := range from.Models {
			price.Date = cmp.Or(price.Date, from.Date)
			all[name] = price
		}
	}
	maps.Copy(all, s.Prices)
	for name, price := range all {
		price.Date = cmp.Or(price.Date, s.PricesDate)
		all[name] = price
	}
	if len(all) > 0 {
		s.Prices = all
	}
	s.PricesFile, s.PricesDate = "", ""
	return s.Validate()
}
