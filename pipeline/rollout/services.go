package rollout

import (
	"cmp"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// What a health check has that says nothing of it, as compose files have it.
const (
	healthInterval = 30 * time.Second
	healthTimeout  = 30 * time.Second
	healthRetries  = 3
)

// servicesOf are the services of a task, as a sandbox takes them. Those with a Dockerfile have no image yet.
func servicesOf(task *episode.Task) (all []sandbox.Service) {
	for _, s := range task.Services {
		wanted := sandbox.Service{
			Name: s.Name, Image: s.Image, Entrypoint: s.Entrypoint, Args: s.Command, Env: s.Env, Workdir: s.Cwd, User: s.User,
			Once: s.Once, Restart: s.Restart, After: s.After,
		}
		if h := s.Health; h != nil {
			wanted.Health = &sandbox.Health{
				Args: h.Command, Interval: cmp.Or(h.Interval, healthInterval), Timeout: cmp.Or(h.Timeout, healthTimeout),
				Start: h.Start, Retries: cmp.Or(h.Retries, healthRetries),
			}
		}
		for _, path := range sortedPaths(s.Files) {
			wanted.Files = append(wanted.Files, sandbox.FileWrite{Path: path, Data: s.Files[path], Mode: fileMode(s.Files[path])})
		}
		all = append(all, wanted)
	}
	return all
}
