package export

import "math"

// skyrlMetrics add up what SkyRL's generator says of the lengths of responses.
type skyrlMetrics struct {
	shortest, longest int
	all, squares      average
	rewarded, others  average // with a reward other than zero, and the rest
}

func (m *skyrlMetrics) add(tokens int, reward float64) {
	if m.all.n == 0 || tokens < m.shortest {
		m.shortest = tokens
	}
	m.longest = max(m.longest, tokens)
	length := float64(tokens)
	m.all.add(length)
	m.squares.add(length * length)
	if reward != 0 {
		m.rewarded.add(length)
	} else {
		m.others.add(length)
	}
}

func (m *skyrlMetrics) values() map[string]float64 {
	mean := m.all.mean()
	return map[string]float64{
		"generate/min_num_tokens":              float64(m.shortest),
		"generate/max_num_tokens":              float64(m.longest),
		"generate/avg_num_tokens":              mean,
		"generate/std_num_tokens":              math.Sqrt(max(0, m.squares.mean()-mean*mean)),
		"generate/avg_tokens_non_zero_rewards": m.rewarded.mean(),
		"generate/avg_tokens_zero_rewards":     m.others.mean(),
	}
}
