package gate

// State is what a gate knows of its endpoint.
type State struct {
	Limit    float64 // requests in flight that it allows now
	InFlight int
	Waiting  int
	Held     bool // the first waiting request waits for this process's processors, not for the endpoint
}

// State returns the gate's figures.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Limit: g.limit.value, InFlight: g.inFlight, Waiting: g.queue.len(), Held: g.busy}
}

// Gate returns the gate of the i-th endpoint.
func (s *Set) Gate(i int) *Gate { return s.gates[i] }
