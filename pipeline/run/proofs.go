package run

import (
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run/proof"
)

// Proofs are the proofs that this machine keeps.
func (p Play) Proofs() proof.Store { return proof.Store{Dir: proof.Dir(p.ProofDir, ImageDir())} }

// ProofDigest names a task under the experiment's conditions: what a reference solution, doing nothing and an attack find. What
// is only about the model is not of them.
func (e *Experiment) ProofDigest(task *episode.Task) (string, error) {
	conditions := map[string]string{
		"version": version, "level": string(e.Backend.Guarantees().Level), "plugins": e.parts.Plugins, "mcp": e.parts.MCP,
	}
	for _, s := range e.File.Settings() {
		section, _, _ := strings.Cut(s.Key, ".")
		if s.Decides != "no" && (section == "sandbox" || section == "verifier" || s.Key == "limits.turns" || s.Key == "limits.time") {
			conditions[s.Key] = s.text()
		}
	}
	return proof.Digest(Fingerprint(conditions), task)
}
