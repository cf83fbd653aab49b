package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/registry"
)

// The bounds of what a user is asked and says.
const (
	maxQuestions   = 30   // of one episode
	maxReplyTokens = 1024 // of one answer of a model
	maxReply       = 4000 // characters of it
)

// user answers the questions of one episode's agent: from the task's script, or through a model. It is what the tool
// clarify finds among the services of the session.
type user struct {
	attempt *attempt
	script  []scripted

	mu    sync.Mutex        // one question at a time, and guards what follows
	said  []episode.Message // the conversation as the model that plays the user sees it
	fault error             // what ends the episode
}

type scripted struct {
	match  *regexp.Regexp
	answer string
}

func newUser(a *attempt) (*user, error) {
	u := &user{attempt: a}
	for i, answer := range a.task.User.Answers {
		match, err := regexp.Compile(answer.Match)
		if err != nil {
			return nil, faulty(episode.ToolError, "user", fmt.Errorf("user.answers[%d].match: %w", i, err))
		}
		u.script = append(u.script, scripted{match, answer.Answer})
	}
	return u, nil
}

// Ask answers a question. The script comes before the model, so that a task can fix what matters and leave the rest.
func (u *user) Ask(ctx context.Context, question string, choices []string) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	trace := u.trace()
	if trace.Questions >= maxQuestions {
		return "", registry.Failf("too_many_questions", "the user has answered %d questions and answers no more", maxQuestions)
	}
	answer, err := u.answer(ctx, question, choices)
	if err != nil {
		return "", err
	}
	trace.Questions++
	return answer, nil
}

func (u *user) answer(ctx context.Context, question string, choices []string) (string, error) {
	for _, line := range u.script {
		if line.match.MatchString(question) {
			return line.answer, nil
		}
	}
	given := u.attempt.task.User
	switch {
	case given.Model:
		return u.play(ctx, question, choices)
	case given.Default != "":
		return given.Default, nil
	}
	return "", registry.Failf("no_answer", "the user does not know: decide by yourself, and say in the final answer what you assumed")
}

func (u *user) trace() *episode.UserTrace {
	if u.attempt.ep.User == nil {
		u.attempt.ep.User = &episode.UserTrace{}
	}
	return u.attempt.ep.User
}

// play lets the model answer. What it dies of is the episode's fault and never the agent's.
func (u *user) play(ctx context.Context, question string, choices []string) (string, error) {
	a, trace := u.attempt, u.trace()
	if a.User == nil {
		u.fault = faulty(episode.ModelError, "no_user_model", errors.New("the task wants a model for its user, and the run names none"))
		return "", u.fault
	}
	said := append(slices.Clone(u.said), episode.Message{Role: "user", Content: asked(question, choices)})
	seed := int(a.ep.Key.Rand("user").Int32()>>1) + len(said)
	began := a.Now()
	var reply model.Reply
	err := a.progress.inquire(record.User, asked(question, choices), &reply, func() (err error) {
		reply, err = a.User.Complete(ctx, model.Request{
			Messages: append([]episode.Message{{Role: "system", Content: persona(a.task)}}, said...),
			Seed:     &seed, MaxTokens: maxReplyTokens, Asker: model.AskerOf(a.ep),
		})
		return err
	})
	if err != nil {
		return "", u.failed(ctx, err, a.Now().Sub(began))
	}
	if trace.Model == "" {
		trace.Usage = reply.Usage
	} else {
		trace.Usage = trace.Usage.Add(reply.Usage)
	}
	trace.Model = cmp.Or(reply.Model, "unknown")
	text := strings.TrimSpace(reply.Message.Content)
	if runes := []rune(text); len(runes) > maxReply {
		text = string(runes[:maxReply]) + "…"
	}
	if text == "" {
		u.fault = faulty(episode.ModelError, "user_silent", errors.New("the model that plays the user said nothing"))
		return "", u.fault
	}
	u.said = append(said, episode.Message{Role: "assistant", Content: text})
	return text, nil
}

// failed keeps what the user's model died of. It does not count that the agent's own time ran out meanwhile, or that the run was
// cancelled, unless the model took most of that time.
func (u *user) failed(ctx context.Context, err error, waited time.Duration) error {
	var failed *model.Error
	switch {
	case !errors.As(err, &failed):
		u.fault = faulty(episode.ModelError, "user_unknown", fmt.Errorf("ask the user: %w", err))
	case failed.Fatal:
		u.fault = fmt.Errorf("ask the user: %w", err)
	case failed.Class != model.ClassCancelled:
		u.fault = faulty(episode.ModelError, "user_"+failed.Class, fmt.Errorf("ask the user: %w", err))
	case len(failed.Retries) > 0, !errors.Is(context.Cause(ctx), errTimeUp), waited > u.attempt.limits.Time/2:
		u.fault = faulty(episode.ModelError, "user_timeout", fmt.Errorf("the model that plays the user did not answer for %s", waited.Round(time.Second)))
	}
	return err
}

// broken is what ended the conversation with the user, if something did.
func (u *user) broken() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.fault
}

// asked is a question as the user reads it.
func asked(question string, choices []string) string {
	if len(choices) == 0 {
		return question
	}
	return question + "\n\nChoices:\n- " + strings.Join(choices, "\n- ")
}

// persona says to a model whom it plays.
func persona(task *episode.Task) string {
	var text strings.Builder
	text.WriteString("You are the person who gave an assistant a task. While it works it asks you questions. Answer each as that person " +
		"would: in a sentence or two, with what you know and nothing invented; where choices are given, name one unless none fits. " +
		"If you do not know, say so. Never do the task yourself, and say nothing about being a model.")
	if task.User.Persona != "" {
		text.WriteString("\n\nWho you are and what you know:\n" + task.User.Persona)
	}
	text.WriteString("\n\nThe task that you gave:")
	for _, message := range task.Prompt {
		if message.Role == "user" {
			text.WriteString("\n" + message.Content)
		}
	}
	return text.String()
}
