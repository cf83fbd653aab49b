package run

import (
	"context"
	"encoding/json"
	"maps"

	"trajgen/tools/twin"
)

// openTwin opens the recording of tools that is replayed. Plugins and MCP servers that it answers for need not be there.
func (e *Experiment) openTwin(context.Context) (err error) {
	if e.twin, err = twin.Open(e.File.Twin); err != nil {
		return err
	}
	e.closers = append(e.closers, e.twin.Close)
	e.parts.Twin = e.twin.Fingerprint()
	return nil
}

// recordTwin records the calls of tools in a run directory, with what is said of those who answer.
func (e *Experiment) recordTwin(dir string, resumed bool) error {
	descriptions := map[string]json.RawMessage{}
	if e.plugins != nil {
		of, err := e.plugins.Descriptions()
		if err != nil {
			return err
		}
		maps.Copy(descriptions, of)
	}
	if e.mcp != nil {
		maps.Copy(descriptions, e.mcp.Descriptions())
	}
	return e.twin.Record(dir, resumed, descriptions)
}
