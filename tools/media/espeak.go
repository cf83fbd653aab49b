package media

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	"trajgen/sandbox"
	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

const (
	maxSpoken  = 128 << 20 // bytes of a WAV file: 50 minutes
	spokenPart = 4 << 20   // what is read of it at once
)

// Speak has espeak-ng speak a checked text in a sandbox, into a file that exists there. With an error the file is gone; it is a
// *source.Error, unless ctx has ended or the sandbox is lost.
func (v *View) Speak(ctx context.Context, box sandbox.Sandbox, file string, speech Speech) (About, error) {
	about := About{By: "espeak-ng", Type: "audio/wav", Characters: utf8.RuneCountInString(speech.Text)}
	args := []string{"espeak-ng", "--stdin", "-w", file}
	if voice := v.config.Settings.Voice; voice != "" {
		args = append(args, "-v", voice)
	}
	ran, err := sandbox.Run(ctx, box, sandbox.Command{Args: args, Stdin: strings.NewReader(speech.Text)}, sandbox.RunOptions{})
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		err = source.Errorf(source.Operator, source.Unavailable, "espeak-ng is missing in sandboxes: "+
			"install it (apt-get install espeak-ng), or name another provider (setting media.speech)")
	case err != nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case ran.Exit.Code != 0:
		said := chars.First(string(ran.Stderr.Bytes()), 200, "…")
		err = source.Errorf(source.Outage, source.Unavailable, "espeak-ng ended with %d: %s", ran.Exit.Code, said)
	default:
		err = about.measure(ctx, box, file)
	}
	if err != nil {
		return about, errors.Join(err, box.Files().Remove(context.WithoutCancel(ctx), file))
	}
	return about, nil
}

// measure reads a WAV file in parts, for its digest, its size and how long it plays.
func (a *About) measure(ctx context.Context, box sandbox.Sandbox, file string) error {
	sum := sha256.New()
	var head []byte
	for {
		part, info, err := box.Files().Read(ctx, file, int64(a.Bytes), spokenPart)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return source.Errorf(source.Outage, source.Unavailable, "espeak-ng wrote no file")
		case err != nil:
			return err
		case info.Size > maxSpoken:
			return source.Errorf(source.Agent, source.TooLarge, "the sound has more than %d MB: speak less text at once", maxSpoken>>20)
		}
		if a.Bytes == 0 {
			head = part
		}
		sum.Write(part)
		if a.Bytes += len(part); len(part) < spokenPart {
			break
		}
	}
	a.Digest = hex.EncodeToString(sum.Sum(nil))
	var err error
	a.Seconds, err = WAV(head[:min(len(head), 4096)], int64(a.Bytes))
	return err
}
