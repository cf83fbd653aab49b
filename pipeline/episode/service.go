package episode

import "time"

// Companion is a service: a program that runs beside the sandbox, in an image of its own: a database, a web server. See sandbox.Service.
type Companion struct {
	Name       string            `json:"name"`
	Image      string            `json:"image,omitempty"`
	Build      *Build            `json:"build,omitempty"`      // how the image is made, instead of Image
	Entrypoint []string          `json:"entrypoint,omitempty"` // instead of the image's, and of its command
	Command    []string          `json:"command,omitempty"`    // instead of the image's
	Env        map[string]string `json:"env,omitempty"`
	Cwd        string            `json:"cwd,omitempty"`
	User       string            `json:"user,omitempty"`
	Files      Files             `json:"files,omitempty"` // absolute paths
	Health     *Health           `json:"health,omitempty"`
	Once       bool              `json:"once,omitempty"`    // it ends before the agent begins
	Restart    string            `json:"restart,omitempty"` // "always" or "on-failure"
	After      []string          `json:"after,omitempty"`   // services that must be ready before it starts
}

// Health is a command that succeeds in a service's container once that is well.
type Health struct {
	Command  []string      `json:"command"`
	Interval time.Duration `json:"interval,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Start    time.Duration `json:"start,omitempty"` // in which failures do not count
	Retries  int           `json:"retries,omitempty"`
}

// Images are those that are made for the task's sandbox and its services.
func (t *Task) Images() (all []*Build) {
	if t.Build != nil {
		all = append(all, t.Build)
	}
	for _, s := range t.Services {
		if s.Build != nil {
			all = append(all, s.Build)
		}
	}
	return all
}
