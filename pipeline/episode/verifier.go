package episode

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

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
	// Build makes it, instead.
	Image     string   `json:"image,omitempty"`
	Build     *Build   `json:"build,omitempty"`
	Artifacts []string `json:"artifacts,omitempty"`
	// Network, Allow and the resources are those of the task where they are not given.
	Network string   `json:"network,omitempty"`
	Allow   []string `json:"allow,omitempty"`
	Resources
	// Trust are files that stay in a fork as the agent left them, as patterns: see reward.Suspects.
	Trust []string `json:"trust,omitempty"`
}

// Own says whether the verifier must have a sandbox of its own.
func (v Verifier) Own() bool {
	return v.Sandbox == VerifierFork || v.Elsewhere() || v.Network != "" || v.Resources != Resources{}
}

// Elsewhere says whether the verifier runs in another image.
func (v Verifier) Elsewhere() bool { return v.Image != "" || v.Build != nil }

// Builds are what the images of the task, of its services and of its verifiers are made from, in the order in which an episode needs
// them.
func (t *Task) Builds() []*Build {
	all := t.Images()
	add := func(v *Verifier) {
		if v != nil && v.Build != nil {
			all = append(all, v.Build)
		}
	}
	add(t.Verifier)
	for _, check := range t.Verify {
		add(check.Verifier)
	}
	return all
}

// Placeless is the task without where its Dockerfiles lie on this machine, which says nothing about the task.
func (t *Task) Placeless() Task {
	placeless := func(v *Verifier) *Verifier {
		if v == nil {
			return nil
		}
		kept := *v
		kept.Build = v.Build.placeless()
		return &kept
	}
	kept := *t
	kept.Build, kept.Verifier = t.Build.placeless(), placeless(t.Verifier)
	kept.Services = slices.Clone(t.Services)
	for i := range kept.Services {
		kept.Services[i].Build = kept.Services[i].Build.placeless()
	}
	kept.Verify = slices.Clone(t.Verify)
	for i := range kept.Verify {
		kept.Verify[i].Verifier = placeless(kept.Verify[i].Verifier)
	}
	return kept
}

func (b *Build) placeless() *Build {
	if b == nil {
		return nil
	}
	kept := *b
	kept.Dir = ""
	return &kept
}

// Validate says what does not go together.
func (v Verifier) Validate() error {
	var errs []error
	refuse := func(wrong bool, why string) {
		if wrong {
			errs = append(errs, errors.New(why))
		}
	}
	same := v.Sandbox == VerifierSame
	refuse(v.Sandbox != "" && v.Sandbox != VerifierFork && !same, fmt.Sprintf("sandbox is %q; want fork (a copy of the agent's sandbox, thrown away afterwards) or same (the agent's sandbox)", v.Sandbox))
	refuse(v.Image != "" && v.Build != nil, "image and build exclude each other: an image is named, or made")
	refuse(v.Sandbox != "" && v.Elsewhere(), "image is a sandbox of its own: leave sandbox out")
	refuse(len(v.Artifacts) > 0 && !v.Elsewhere(), "artifacts are copied into an image: give image, too")
	refuse(len(v.Trust) > 0 && (same || v.Elsewhere()), "trust is about files in a fork: it goes with sandbox: fork")
	refuse((len(v.Allow) > 0) != (v.Network == "allowlist"), "allow and network: allowlist go together")
	refuse(same && (v.Network != "" || v.Resources != Resources{}), "network and limits are those of the agent's sandbox: they go with sandbox: fork, or with image")
	for _, name := range v.Artifacts {
		for _, other := range v.Artifacts {
			// A link of the agent's at the one would lead the other elsewhere.
			refuse(strings.HasPrefix(path.Clean(other), path.Clean(name)+"/"), fmt.Sprintf("artifacts: %s lies in %s, which is copied with all that is in it", other, name))
		}
		refuse(path.Clean(name) == "/" || path.Clean(name) == ".." || strings.HasPrefix(path.Clean(name), "../"), fmt.Sprintf("artifacts: %q: want a path in the working directory, or an absolute one", name))
	}
	return errors.Join(errs...)
}
