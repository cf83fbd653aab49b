package episode

import (
	"cmp"
	"strings"
)

// Price is what a model costs, in USD for 1M tokens, for an image, for 1M characters that it speaks, and for a second of video.
type Price struct {
	Input  float64 `json:"input" yaml:"input"`
	Output float64 `json:"output" yaml:"output"`
	// CachedInput is the price of prompt tokens that the server had cached; 0 is that of Input.
	CachedInput float64 `json:"cached_input,omitempty" yaml:"cached_input,omitempty"`
	Image       float64 `json:"image,omitempty" yaml:"image,omitempty"`
	Characters  float64 `json:"characters,omitempty" yaml:"characters,omitempty"`
	Second      float64 `json:"second,omitempty" yaml:"second,omitempty"`
	Date        string  `json:"date,omitempty" yaml:"date,omitempty"` // when the price was looked up
}

// Prices are prices by the names of models.
type Prices map[string]Price

// Find returns the price of the first name that has one. Servers answer with dated names, and prices have plain ones.
func (p Prices) Find(names ...string) (name string, price Price, ok bool) {
	for _, name := range names {
		if price, ok := p[name]; ok && name != "" {
			return name, price, true
		}
	}
	return cmp.Or(cmp.Or(names...), "(unnamed)"), Price{}, false
}

// Of is the cost in USD. Cached tokens count at most as many as the prompt has, whatever the server says.
func (p Price) Of(u Usage) float64 {
	cached := min(u.Cached, u.Prompt)
	tokens := float64(u.Prompt-cached)*p.Input + float64(cached)*cmp.Or(p.CachedInput, p.Input) + float64(u.Completion)*p.Output
	return (tokens+float64(u.Characters)*p.Characters)/1e6 + float64(u.Images)*p.Image + u.Seconds*p.Second
}

// Amounts are the amounts of money, by their names.
func (p Price) Amounts() map[string]float64 {
	return map[string]float64{
		"input": p.Input, "output": p.Output, "cached_input": p.CachedInput,
		"image": p.Image, "characters": p.Characters, "second": p.Second,
	}
}

// AtLeast is the higher of two prices in each of their amounts.
func (p Price) AtLeast(q Price) Price {
	return Price{
		Input: max(p.Input, q.Input), Output: max(p.Output, q.Output), CachedInput: max(p.CachedInput, q.CachedInput),
		Image: max(p.Image, q.Image), Characters: max(p.Characters, q.Characters), Second: max(p.Second, q.Second),
	}
}

// Billed are the names by which a turn's price is looked up, in order: the server's name, then the requested one. asked is the
// run's name of the model; it is not used for a turn that a fallback answered.
func (ep *Episode) Billed(turn *Turn, asked string) []string {
	if turn.Fallback != "" {
		plain, _, _ := strings.Cut(turn.Fallback, " at ") // without the endpoint, which distinguishes models of the same name
		return []string{turn.Model, plain}
	}
	return []string{turn.Model, ep.Sampling.Model, asked}
}

// CostOf adds up the cost of an episode's turns and summaries, and reports whether all of it is known. asked is the run's name
// of the model.
func CostOf(ep *Episode, prices Prices, asked string) (usd float64, known bool) {
	known = len(ep.Turns) > 0
	add := func(u Usage, names ...string) {
		_, price, ok := prices.Find(names...)
		known = known && ok && u.Reported
		usd += price.Of(u)
	}
	for i := range ep.Turns {
		if !ep.Paid(i) {
			continue
		}
		add(ep.Turns[i].Usage, ep.Billed(&ep.Turns[i], asked)...)
	}
	for i := range ep.Compactions {
		if c := &ep.Compactions[i]; c.Usage != nil {
			add(*c.Usage, c.Model, c.Asked)
		}
	}
	ep.Inquired(add)
	return usd, known
}
