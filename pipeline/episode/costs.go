package episode

import "time"

// TurnCost is that of a turn with its calls.
type TurnCost struct {
	Turn    int
	Tokens  int
	Known   bool // Tokens
	USD     *float64
	Elapsed time.Duration
}

// TurnCosts are those of each turn; asked is the model as the run asks for it.
func TurnCosts(ep *Episode, prices Prices, asked string) (costs []TurnCost) {
	at := map[int]int{}
	for i := range ep.Turns {
		turn := &ep.Turns[i]
		at[turn.Index] = len(costs)
		c := TurnCost{Turn: turn.Index, Tokens: turn.Usage.Prompt + turn.Usage.Completion, Known: turn.Usage.Reported, Elapsed: turn.Elapsed}
		if _, price, ok := prices.Find(ep.Billed(turn, asked)...); ok && turn.Usage.Reported {
			c.USD = new(price.Of(turn.Usage))
		}
		costs = append(costs, c)
	}
	for _, call := range ep.Calls {
		if i, ok := at[call.Turn]; ok && call.Parent == "" {
			costs[i].Elapsed += call.Elapsed
		}
	}
	return costs
}

// Beyond adds up the costs of the turns after one, and how many there are.
func Beyond(costs []TurnCost, turn int) (n int, sum TurnCost) {
	sum.Known, sum.USD = true, new(0.0)
	for _, c := range costs {
		if c.Turn <= turn {
			continue
		}
		n++
		sum.Tokens, sum.Known, sum.Elapsed = sum.Tokens+c.Tokens, sum.Known && c.Known, sum.Elapsed+c.Elapsed
		if c.USD == nil {
			sum.USD = nil
		} else if sum.USD != nil {
			sum.USD = new(*sum.USD + *c.USD)
		}
	}
	return n, sum
}
