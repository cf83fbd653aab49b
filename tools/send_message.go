package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"strings"
	"time"

	"trajgen/registry"
	"trajgen/tools/messages"
	"trajgen/tools/messages/outbox"
	"trajgen/tools/web/source"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "send_message", Toolset: "messaging", Timeout: 2 * time.Minute,
		Description: "Sends a message to a channel, lists the channels, or reacts to a message with an emoji. List the channels first unless the " +
			"target is known. A file of the machine is sent with MEDIA:path in the message.",
		Replayed: keepMessage,
	}, sendMessage))
}

type sendMessageArgs struct {
	Action    string `json:"action,omitempty" doc:"What to do." enum:"send,list,react,unreact" default:"send"`
	Target    string `json:"target,omitempty" alias:"channel,to" doc:"Where to: platform, platform:channel or platform:channel:thread, as the list has them." example:"telegram:family" maxlen:"500"`
	Message   string `json:"message,omitempty" alias:"text,content" doc:"The text. MEDIA:path sends a file with it." maxlen:"50000"`
	Emoji     string `json:"emoji,omitempty" doc:"For react and unreact." maxlen:"100"`
	MessageID string `json:"message_id,omitempty" doc:"The message that react and unreact are for." maxlen:"200"`
}

// messageAbout is what a call's row says of its message.
type messageAbout struct {
	Mode     string           `json:"mode"`
	Message  *outbox.Message  `json:"message,omitempty"`
	Reaction *outbox.Reaction `json:"reaction,omitempty"`
}

type sentMessage struct {
	Success  bool   `json:"success"`
	Platform string `json:"platform"`
	Channel  string `json:"channel"`
	ID       string `json:"message_id"`
}

type messageTargets struct {
	Targets []string `json:"targets"`
}

func sendMessage(ctx context.Context, env *registry.Env, args sendMessageArgs) (any, error) {
	view, ok := registry.Service[*messages.View](env.Session)
	if !ok {
		return nil, registry.Failf("no_messages", "this episode has no messages")
	}
	about := &messageAbout{Mode: view.Mode()}
	env.Source = about
	if args.Action == "list" {
		return messageTargets{view.Channels()}, nil
	}
	channel, thread, err := view.Find(strings.TrimSpace(args.Target))
	if err != nil {
		return nil, sourceFailure(err)
	}
	platform, _, _ := strings.Cut(channel, ":")
	if args.Action != "send" {
		if args.Emoji == "" || args.MessageID == "" {
			return nil, registry.Failf("no_message", "%s needs emoji and message_id", args.Action)
		}
		about.Reaction = &outbox.Reaction{Channel: channel, Message: args.MessageID, Emoji: args.Emoji}
		if err := view.React(ctx, env.CallID, *about.Reaction, args.Action == "react"); err != nil {
			return nil, sourceFailure(err)
		}
		return sentMessage{true, platform, channel, args.MessageID}, nil
	}
	text, files, err := mediaOf(ctx, env, args.Message)
	if err != nil {
		return nil, sourceFailure(err)
	}
	if text == "" && len(files) == 0 {
		return nil, registry.Failf("no_message", "message is empty: say what to send")
	}
	about.Message = &outbox.Message{Channel: channel, Thread: thread, Text: text, Files: files}
	id, err := view.Send(ctx, env.CallID, *about.Message)
	if err != nil {
		return nil, sourceFailure(err)
	}
	about.Message.ID = id
	return sentMessage{true, platform, channel, id}, nil
}

// keepMessage keeps a message that a recording says was sent, so that the episode's outbox has it, with the files of this episode.
func keepMessage(ctx context.Context, env *registry.Env, arguments json.RawMessage, answer registry.Answer) error {
	view, ok := registry.Service[*messages.View](env.Session)
	if !ok || answer.Failure != nil {
		return nil
	}
	var args sendMessageArgs
	var about messageAbout
	if err := errors.Join(json.Unmarshal(arguments, &args), json.Unmarshal(answer.Source, &about)); err != nil {
		return err
	}
	if about.Reaction != nil {
		_ = view.Outbox.React(*about.Reaction, args.Action == "react") // it may be for a message that the episode did not send
	}
	if about.Message == nil {
		return nil
	}
	text, files, err := mediaOf(ctx, env, args.Message)
	if err != nil {
		return sourceFailure(err)
	}
	_, err = view.Outbox.Send(outbox.Message{Channel: about.Message.Channel, Thread: about.Message.Thread, Text: text, Files: files})
	return err
}

// mediaMark is a file in a message, with quotes where its name has spaces.
var mediaMark = regexp.MustCompile("MEDIA:(?:\"([^\"\n]+)\"|`([^`\n]+)`|(\\S+))")

const (
	mostFiles   = 10
	maxAttached = 20 << 20 // bytes of all files of a message
)

// mediaOf takes the files out of a message.
func mediaOf(ctx context.Context, env *registry.Env, message string) (string, []outbox.File, error) {
	files, size := []outbox.File{}, 0
	marks := mediaMark.FindAllStringSubmatch(message, -1)
	if len(marks) > mostFiles {
		return "", nil, source.Errorf(source.Agent, source.TooLarge, "the message has %d files; at most %d", len(marks), mostFiles)
	}
	for _, mark := range marks {
		name := mark[1] + mark[2] + mark[3]
		data, err := readMediaFile(ctx, env, name)
		if err != nil {
			return "", nil, err
		}
		if size += len(data); size > maxAttached {
			return "", nil, source.Errorf(source.Agent, source.TooLarge, "the files of the message have more than %d MB", maxAttached>>20)
		}
		sum := sha256.Sum256(data)
		files = append(files, outbox.File{Name: path.Base(name), Bytes: len(data), SHA256: hex.EncodeToString(sum[:]), Data: data})
	}
	return strings.TrimSpace(mediaMark.ReplaceAllString(message, "")), files, nil
}
