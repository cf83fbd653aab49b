package media

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Speech is a text that is to be spoken.
type Speech struct {
	Text   string
	Format string // mp3, wav, opus, flac or aac; "" is the provider's usual one
}

// Speaker is who speaks, and in which formats; the usual one comes first.
func (v *View) Speaker() (provider string, formats []string) {
	name := cmp.Or(v.config.Settings.Speech, Espeak)
	if name == Espeak {
		return name, []string{"wav"}
	}
	return name, kinds[name].formats
}

// MostSpoken is how many characters a provider takes at once.
func (v *View) MostSpoken() int {
	switch name, model := v.config.Settings.Speech, v.config.Settings.SpeechModel; {
	case name == "openai":
		return 4096
	case name == "elevenlabs" && strings.Contains(model, "flash"):
		return 40_000
	case name == "elevenlabs" && strings.Contains(model, "v3"):
		return 5000
	case name == "elevenlabs":
		return 10_000
	}
	return 4000
}

// Check refuses what the provider cannot speak, and completes the format.
func (v *View) Check(s *Speech) error {
	name, formats := v.Speaker()
	s.Format = cmp.Or(s.Format, formats[0])
	switch n, most := utf8.RuneCountInString(s.Text), v.MostSpoken(); {
	case strings.TrimSpace(s.Text) == "":
		return source.Errorf(source.Agent, "empty_text", "the text is empty")
	case n > most:
		const says = "the text has %d characters, and %s takes %d at once: split it"
		return source.Errorf(source.Agent, source.TooLarge, says, n, name, most)
	case !slices.Contains(formats, s.Format):
		makes := strings.Join(formats, ", ")
		return source.Errorf(source.Agent, source.Unsupported, "%s does not make %s files; it makes %s", name, s.Format, makes)
	}
	return nil
}

// Spoken has a provider speak a checked text. An error is a *source.Error, unless ctx has ended.
func (v *View) Spoken(ctx context.Context, call string, speech Speech) (File, error) {
	settings := v.config.Settings
	s := v.service(settings.Speech, call)
	voice := cmp.Or(settings.Voice, s.voice)
	about := About{
		By: s.version, Model: cmp.Or(settings.SpeechModel, s.kind.speech), Mode: v.attempt.Web.Mode(), Type: "audio/" + speech.Format,
		Characters: utf8.RuneCountInString(speech.Text),
	}
	var data []byte
	worst := model.Bound{Made: episode.Made{Characters: about.Characters}}
	err := v.paid(ctx, s, &about, order{"speech", speech.Text, worst, func() (used episode.Usage, err error) {
		if s.name == "elevenlabs" {
			data, err = s.elevenlabs(ctx, about.Model, voice, speech)
		} else {
			data, err = s.openaiSpeech(ctx, about.Model, voice, speech.Text, speech.Format)
		}
		return episode.Usage{Reported: true, Made: worst.Made}, err
	}})
	if err == nil && !sounds(speech.Format, data) {
		says := s.Excerpt(string(data[:min(len(data), 4096)]))
		err = s.Errorf(source.Outage, source.Malformed, "what came is not a file of the format %s: %s", speech.Format, says)
	}
	if err == nil && speech.Format == "wav" {
		if about.Seconds, err = WAV(data, int64(len(data))); err != nil {
			err = s.Errorf(source.Outage, source.Malformed, "%v", err)
		}
	}
	if err != nil {
		return File{About: about}, err
	}
	about.Weigh(data)
	return File{data, about}, nil
}

func (s *service) elevenlabs(ctx context.Context, model, voice string, speech Speech) ([]byte, error) {
	formats := map[string]string{"mp3": "mp3_44100_128", "opus": "opus_48000_128"}
	return s.Send(ctx, provider.Request{
		Method: http.MethodPost, Path: "/text-to-speech/" + url.PathEscape(voice),
		Query: url.Values{"output_format": {formats[speech.Format]}},
		JSON:  map[string]any{"text": speech.Text, "model_id": model}, Costly: true,
	})
}

// sounds says whether a file begins as files of a format do.
func sounds(format string, data []byte) bool {
	begins := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(data, []byte(p)) })
	}
	switch format {
	case "wav":
		return begins("RIFF")
	case "opus":
		return begins("OggS")
	case "flac":
		return begins("fLaC")
	case "aac":
		return begins("\xff\xf1", "\xff\xf9")
	}
	return begins("ID3", "\xff\xfb", "\xff\xf3", "\xff\xf2", "\xff\xfa")
}

// WAV is how long a WAV file plays, in seconds. head is its beginning, and size that of the file: a header that was written
// before the sound may not know.
func WAV(head []byte, size int64) (seconds float64, err error) {
	bad := func(why string) (float64, error) {
		return 0, source.Errorf(source.Outage, source.Malformed, "the WAV file cannot be played: %s", why)
	}
	if len(head) < 12 || string(head[:4]) != "RIFF" || string(head[8:12]) != "WAVE" {
		return bad("it has no header")
	}
	var rate uint32 // bytes in a second
	for at := int64(12); at+8 <= int64(len(head)); {
		name, length := string(head[at:at+4]), int64(binary.LittleEndian.Uint32(head[at+4:]))
		body := at + 8
		switch {
		case name == "fmt " && body+16 <= int64(len(head)):
			rate = binary.LittleEndian.Uint32(head[body+8:])
		case name == "data":
			length = min(length, size-body)
			if rate == 0 || length <= 0 {
				return bad("it has no sound")
			}
			return math.Round(float64(length)/float64(rate)*1000) / 1000, nil
		}
		at = body + length + length%2
	}
	return bad("it has no sound")
}
