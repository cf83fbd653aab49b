package progress

import "fmt"

// Described is what the bar says.
func (p *Run) Described() string {
	s := p.bar.State()
	return fmt.Sprintf("%s (%d/%d)", s.Description, s.CurrentNum, s.Max)
}
