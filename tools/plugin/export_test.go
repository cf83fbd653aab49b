package plugin

import (
	"encoding/json"

	"trajgen/registry"
	"trajgen/tools/internal/program"
)

// Runs says whether the next call of a session would find a process of a plugin that was called before.
func Runs(s *registry.Session, name string) bool {
	return registry.State(s, "plugin."+name, func() *live { return nil }).running() != nil
}

// Answers cuts what a plugin wrote into lines and reads each as an answer to both methods.
func Answers(output []byte, pieces int) (results []json.RawMessage, errs []error) {
	s := &program.Lines{
		Most: maxLine,
		Line: func(line []byte) {
			got, err := readReply(line)
			if err != nil {
				errs = append(errs, err)
				return
			}
			result, err := got.result()
			if err != nil {
				errs = append(errs, err)
			} else {
				results = append(results, result)
			}
			if d, err := got.describes(); err == nil {
				p := &plugin{cfg: Config{Name: "fuzzed"}, concurrent: d.Concurrent}
				if _, err := p.define(d); err != nil {
					errs = append(errs, err)
				}
			}
		},
		Fail: func(err error) { errs = append(errs, err) },
	}
	for size := len(output)/max(pieces, 1) + 1; len(output) > 0; output = output[min(size, len(output)):] {
		_, _ = s.Write(output[:min(size, len(output))])
	}
	return results, errs
}
