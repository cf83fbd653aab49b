package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"trajgen/tools/cron"
	"trajgen/tools/messages"
	"trajgen/tools/messages/outbox"
)

// Bounds of a message with the output of a job.
const (
	shownOutput = 1900     // characters of its text: what all services take
	maxOutput   = 20 << 20 // bytes of the file beside it
)

// messenger opens where the messages go of a run file that sends to a target.
func messenger(path, target string, getenv func(string) string) (*messages.Messenger, error) {
	file := Default()
	if err := Decode(path, "a run file", &file); err != nil {
		return nil, err
	}
	if _, _, ok := outbox.Find(file.Messages.Channels(), target); !ok {
		return nil, fmt.Errorf("deliver: %s sends no messages to %s (have %s): its section messages says where they may go", path,
			target, strings.Join(file.Messages.Channels(), ", "))
	}
	return messages.Open(messages.Config{Settings: file.Messages, Kept: getenv == nil, Getenv: getenv, Now: time.Now})
}

// CheckDelivery says why the output of a job cannot go where a message would.
func CheckDelivery(j cron.Job) error {
	m, err := messenger(j.RunFile, j.Deliver, nil)
	if err != nil {
		return err
	}
	return m.Close()
}

// DeliverMessage sends the output of a job: its beginning, and all of it as a file where that is more.
func DeliverMessage(ctx context.Context, tick cron.Tick, ended cron.Ended, output io.Reader) (err error) {
	j := tick.Job
	sender, err := messenger(j.RunFile, j.Deliver, os.Getenv)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sender.Close()) }()
	data, err := io.ReadAll(io.LimitReader(output, maxOutput))
	if err != nil {
		return err
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD"))
	if ended.Status != cron.OK || text == "" {
		text = strings.TrimSpace(fmt.Sprintf("%s: %s\n%s", j.Name, ended.Status, text))
	}
	view := sender.View(j.ID, nil, askNow)
	m := outbox.Message{Text: text}
	if m.Channel, m.Thread, err = view.Find(j.Deliver); err != nil {
		return err
	}
	if utf8.RuneCountInString(text) > shownOutput {
		m.Text = string([]rune(text)[:shownOutput]) + "…"
		sum := sha256.Sum256(data)
		m.Files = []outbox.File{{Name: j.ID + ".txt", Bytes: len(data), SHA256: hex.EncodeToString(sum[:]), Data: data}}
	}
	if _, err = view.Send(ctx, tick.At.UTC().Format(time.RFC3339Nano), m); err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	return nil
}
