package episode

import "errors"

// The places where the command of a check can run.
const (
	VerifierFork = "fork" // a fork of the episode's sandbox, which is thrown away afterwards
	VerifierSame = "same" // the episode's sandbox itself
)

// Verifier says where the command of a check runs. The zero value is a fork where the backend can fork, and else the episode's
// sandbox.
type Verifier struct {
	Sandbox string `json:"sandbox,omitempty"` // VerifierFork or VerifierSame
	// Image is another image that the command runs in, with copies of the Artifacts: files and folders of the episode's sandbox.
	Image     string   `json:"image,omitempty"`
	Artifacts []string `json:"artifacts,omitempty"`
	// Network, Allow and the resources are those of the task where they are not given.
	Network string   `json:"network,omitempty"`
	Allow   []string `json:"allow,omitempty"`
	Resources
	// Trust are files that stay in a fork as the agent left them, as patterns: see reward.Suspects.
	Trust []string `json:"trust,omitempty"`
}

// Own says whether the verifier must have a sandbox of its own.
func (v Verifier) Own() bool { return v.Sandbox == VerifierFork || v.Image != "" }

// Validate says what does not go together.
func (v Verifier) Validate() error {
	var errs []error
	refuse := func(wrong bool, why string) {
		if wrong {
			errs = append(errs, errors.New(why))
		}
	}
	same := v.Sandbox == VerifierSame
	refuse(v.Sandbox != "" && v.Image != "", "image is a sandbox of its own: leave sandbox out")
	refuse(len(v.Artifacts) > 0 && v.Image == "", "artifacts are copied into an image: give image, too")
	refuse(len(v.Trust) > 0 && (same || v.Image != ""), "trust is about files in a fork: it goes with sandbox: fork")
	refuse((len(v.Allow) > 0) != (v.Network == "allowlist"), "allow and network: allowlist go together")
	refuse(same && (v.Network != "" || v.Resources != Resources{}), "network and limits are those of the agent's sandbox: they go with sandbox: fork, or with image")
	return errors.Join(errs...)
}
