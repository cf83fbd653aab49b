package progress

// Described is what the bar says.
func (p *Run) Described() string { return p.bar.State().Description }
