package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"trajgen/registry"
	"trajgen/tools/cron"
	"trajgen/tools/threats"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "cronjob", Toolset: "cronjob", NoSandbox: true,
		Aliases: map[string]map[string]string{
			"schedule_cronjob": {"action": "create"}, "list_cronjobs": {"action": "list"}, "remove_cronjob": {"action": "remove"},
		},
		Description: "Schedules work for later: a prompt that is given to an agent at a time, in a session of its own, which knows " +
			"nothing of this one. create needs schedule and prompt; schedules are 30m, 2h or 1d (once, after that time), \"every 2h\", " +
			"five fields as in a crontab (\"0 9 * * 1-5\"), or a time (\"2026-11-30T09:00\"). list shows the jobs and what time it is; " +
			"update changes what is given, and pause, resume, run (as soon as possible) and remove take a job_id.",
	}, cronjob))
}

type cronjobArgs struct {
	_ struct{} `idle:"provider,base_url,include_disabled"`

	Action      string            `json:"action" alias:"operation" doc:"What to do." enum:"create,list,update,pause,resume,remove,run"`
	JobID       string            `json:"job_id,omitempty" alias:"id,job" doc:"The job that is meant, by its id or its name; for all actions but create and list." maxlen:"200"`
	Prompt      *string           `json:"prompt,omitempty" alias:"task,message,instructions" doc:"What the agent is to do, in words that can be understood alone; at most 4000 characters."`
	Schedule    *string           `json:"schedule,omitempty" alias:"cron,when,cron_expression" doc:"When it runs." example:"0 9 * * 1-5" maxlen:"200"`
	Name        *string           `json:"name,omitempty" alias:"title" doc:"A name; the default is the beginning of the prompt." maxlen:"200"`
	Repeat      *int              `json:"repeat,omitempty" alias:"times,count" doc:"How often it runs; without it the job runs for ever, except for schedules of a single time." min:"0"`
	Deliver     *string           `json:"deliver,omitempty" alias:"delivery" doc:"Where its answer goes: local (it is kept; the default), origin, or a place such as telegram:CHAT." maxlen:"600"`
	Skills      *[]string         `json:"skills,omitempty" alias:"skill" doc:"Skills that it begins with." maxitems:"20"`
	Model       map[string]string `json:"model,omitempty" doc:"A model other than the usual one: {\"model\": NAME}."`
	Script      *string           `json:"script,omitempty" doc:"A .py or .sh file below the folder scripts, whose output the prompt begins with." maxlen:"200"`
	NoAgent     *bool             `json:"no_agent,omitempty" doc:"Run the script alone, and deliver its output." default:"false"`
	ContextFrom *[]string         `json:"context_from,omitempty" doc:"Jobs whose last output the prompt begins with, by id." maxitems:"10"`
	Toolsets    *[]string         `json:"enabled_toolsets,omitempty" alias:"toolsets" doc:"The toolsets that it has; without them the usual ones." maxitems:"50"`
	Workdir     *string           `json:"workdir,omitempty" alias:"cwd,working_directory" doc:"The directory that it works in: an absolute path." maxlen:"1000"`
}

type cronjobResult struct {
	Success  bool        `json:"success"`
	ID       string      `json:"job_id,omitempty"`
	Name     string      `json:"name,omitempty"`
	Schedule string      `json:"schedule,omitempty"`
	Next     *time.Time  `json:"next_run_at,omitempty"`
	Job      *cron.Job   `json:"job,omitempty"`
	Jobs     *[]cron.Job `json:"jobs,omitempty"`
	Count    *int        `json:"count,omitempty"`
	Now      *time.Time  `json:"now,omitempty"`
	Message  string      `json:"message,omitempty"`
}

// maxCronJobs is how many jobs an episode may have: the state of all stands in the row of each call that changes them.
const maxCronJobs = 32

func cronjob(_ context.Context, env *registry.Env, args cronjobArgs) (result any, err error) {
	view, ok := registry.Service[*cron.View](env.Session)
	if !ok {
		return nil, registry.Failf("no_jobs", "this episode cannot schedule anything")
	}
	err = view.Use(func(t *cron.Table) error {
		if args.Action == "list" {
			jobs, count := append([]cron.Job{}, t.Jobs...), len(t.Jobs)
			result = cronjobResult{Success: true, Jobs: &jobs, Count: &count, Now: &view.Now}
			return nil
		}
		j, message, err := changeCronJob(view, t, args)
		if err != nil {
			return cronFailure(t, err)
		}
		result = cronjobResult{Success: true, ID: j.ID, Name: j.Name, Schedule: j.Schedule, Next: j.Next, Job: &j, Message: message}
		return nil
	})
	if args.Action != "list" && err == nil {
		env.Source = view.JSON()
	}
	return result, err
}

// changeCronJob does what is not only reading.
func changeCronJob(view *cron.View, t *cron.Table, args cronjobArgs) (cron.Job, string, error) {
	if args.Action != "create" && strings.TrimSpace(args.JobID) == "" {
		return cron.Job{}, "", registry.Failf("no_job_id", "%s needs the job_id of a job: list shows them", args.Action)
	}
	if args.Action == "create" || args.Action == "update" {
		if err := args.check(view); err != nil {
			return cron.Job{}, "", err
		}
	}
	var j cron.Job
	var err error
	message := map[string]string{
		"create": "It will run at next_run_at, after this conversation.", "update": "Changed.", "pause": "It does not run until it is resumed.",
		"resume": "It runs again.", "run": "It will run as soon as this conversation has ended.", "remove": "It is gone.",
	}[args.Action]
	switch args.Action {
	case "create":
		switch {
		case view.Inside:
			return j, "", registry.Failf("recursion", "a scheduled job schedules no other jobs")
		case args.Schedule == nil:
			return j, "", registry.Failf("no_schedule", "create needs a schedule: %s", cron.Forms)
		case len(t.Jobs) >= maxCronJobs:
			return j, "", registry.Failf("too_many_jobs", "there are %d jobs, which is the most: remove or update one", len(t.Jobs))
		}
		j.Zone = view.Zone
		args.apply(&j)
		j, err = t.Add(j, view.Now)
	case "update":
		j, err = t.Change(args.JobID, view.Now, args.apply)
	case "pause":
		j, err = t.Pause(args.JobID)
	case "resume":
		j, err = t.Resume(args.JobID, view.Now)
	case "run":
		j, err = t.Trigger(args.JobID, view.Now)
	case "remove":
		j, err = t.Remove(args.JobID)
	}
	return j, message, err
}

// check refuses what no job may have, beside what jobs themselves check.
func (a *cronjobArgs) check(view *cron.View) error {
	if a.Prompt != nil {
		if found := threats.Scan(*a.Prompt); len(found) > 0 {
			return &registry.Failure{
				Class: "unsafe_content", Message: fmt.Sprintf("nothing was scheduled: the prompt looks like %s (%q)",
					strings.ReplaceAll(found[0].ID, "_", " "), found[0].Text),
				Extra: map[string]any{"findings": found},
			}
		}
	}
	if a.Deliver != nil && (strings.HasPrefix(*a.Deliver, "file:") || strings.HasPrefix(*a.Deliver, "command:")) {
		return registry.Failf("bad_delivery", "deliver is %q; want local, origin, or a place such as telegram:CHAT", *a.Deliver)
	}
	if a.Toolsets != nil && view.Toolsets != nil {
		if err := view.Toolsets(*a.Toolsets); err != nil {
			return registry.Failf("unknown_toolset", "enabled_toolsets: %v", err)
		}
	}
	return nil
}

// apply gives a job what the call says of it.
func (a *cronjobArgs) apply(j *cron.Job) {
	give(&j.Prompt, a.Prompt)
	give(&j.Schedule, a.Schedule)
	if a.Name != nil && *a.Name != "" {
		j.Name = *a.Name
	}
	give(&j.Repeat, a.Repeat)
	give(&j.Deliver, a.Deliver)
	give(&j.Script, a.Script)
	give(&j.NoAgent, a.NoAgent)
	give(&j.Workdir, a.Workdir)
	give(&j.Skills, a.Skills)
	give(&j.ContextFrom, a.ContextFrom)
	give(&j.Toolsets, a.Toolsets)
	if a.Model != nil {
		j.Model = maps.Clone(a.Model)
	}
}

func give[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

// cronFailure is a refusal for the model.
func cronFailure(t *cron.Table, err error) error {
	if _, ok := errors.AsType[*registry.Failure](err); ok {
		return err
	}
	if !errors.Is(err, cron.ErrUnknown) {
		return registry.Failf("invalid_job", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	f := registry.Failf("not_found", "%s", err)
	ids := []string{}
	for _, j := range t.Jobs {
		ids = append(ids, j.ID)
	}
	f.Extra = map[string]any{"job_ids": ids}
	return f
}
