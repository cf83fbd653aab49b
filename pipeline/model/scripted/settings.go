package scripted

import "fmt"

// Settings are those of an embedded server, which plays without a model, as in the run file.
type Settings struct {
	Policy string  `yaml:"policy" experiment:"always" help:"play against the embedded scripted server: oracle, noop, noisy or replay; or retrier:0.9, giver_up, gullible:0.5, checker:0.8,0.9 or switcher:0.9, see serve-model --help"`
	Skill  float64 `yaml:"skill" experiment:"in policy" help:"share of episodes that the noisy policy solves"`
}

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	if s.Skill > 1 {
		return fmt.Errorf("skill is %v; from 0 to 1", s.Skill)
	}
	return nil
}

// Decides is what of the settings decides how episodes go.
func (s Settings) Decides() string {
	if s.Policy == Noisy {
		return fmt.Sprintf("noisy skill=%v", s.Skill)
	}
	return s.Policy
}

// Remembers reports whether the policy does something about a result that an episode without faults did not have, see Server.Remember.
func (s Settings) Remembers() bool {
	c, err := parseCharacter(s.Policy)
	return c != nil && err == nil
}
