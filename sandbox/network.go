package sandbox

import (
	"errors"
	"fmt"

	"trajgen/sandbox/internal/egress"
)

// CheckAllow returns all that is wrong with the targets of a Spec.Allow.
func CheckAllow(targets []string) error {
	_, err := egress.Parse(targets)
	return err
}

// checkAllow refuses targets that would have no effect, and an allow list that allows nothing.
func (s *Spec) checkAllow() error {
	err := CheckAllow(s.Allow)
	switch {
	case s.Network == NetworkAllowlist && len(s.Allow) == 0:
		err = errors.Join(err, fmt.Errorf("network %q allows nothing: name targets to allow, such as \"example.org\"", s.Network))
	case s.Network != NetworkAllowlist && len(s.Allow) > 0:
		err = errors.Join(err, fmt.Errorf("network %q has no allow list, which only %q has", s.Network, NetworkAllowlist))
	}
	return err
}
