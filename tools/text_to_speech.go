package tools

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"trajgen/outputs/log/blobs"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/media"
)

const speechFolder = "speech" // of files without an output_path, in the working directory

func init() {
	add(registry.Define(registry.Definition{
		Name: "text_to_speech", Toolset: "tts", Timeout: makeTimeout, Access: speechAccess,
		Description: "Speaks a text, and writes the sound to a file. The result has its path.",
	}, textToSpeech))
}

type textToSpeechArgs struct {
	Text   string `json:"text" alias:"input,message,content" doc:"What is spoken; at most 4000 characters, or what the run's provider takes." maxlen:"40000"`
	Output string `json:"output_path,omitempty" alias:"path,file_path,output" doc:"The file to write; its extension says the format. Default: a file in speech/." maxlen:"1000"`
}

type textToSpeechResult struct {
	Success  bool    `json:"success"`
	File     string  `json:"file_path"`
	Tag      string  `json:"media_tag"`
	Provider string  `json:"provider"`
	Voice    bool    `json:"voice_compatible"`
	Seconds  float64 `json:"duration_seconds,omitempty"`
}

func speechAccess(arguments json.RawMessage) registry.Access {
	var given textToSpeechArgs
	if json.Unmarshal(arguments, &given) == nil && given.Output != "" {
		return registry.Access{Writes: []string{given.Output}}
	}
	return registry.Access{Writes: []string{speechFolder}}
}

// spokenAs are the formats by the extensions of files.
var spokenAs = map[string]string{".wav": "wav", ".mp3": "mp3", ".ogg": "opus", ".opus": "opus", ".flac": "flac", ".aac": "aac"}

func textToSpeech(ctx context.Context, env *registry.Env, args textToSpeechArgs) (any, error) {
	view, err := mediaView(env)
	if err != nil {
		return nil, err
	}
	speech := media.Speech{Text: args.Text}
	if args.Output != "" {
		if slices.Contains(strings.Split(args.Output, "/"), "..") {
			return nil, denied("refused to write %s: the path has .. in it", args.Output)
		}
		extension := strings.ToLower(path.Ext(args.Output))
		if speech.Format = spokenAs[extension]; speech.Format == "" {
			return nil, registry.Failf("bad_format", "output_path must end in .wav, .mp3, .ogg, .flac or .aac, and ends in %q", extension)
		}
	}
	if err := view.Check(&speech); err != nil {
		return nil, mediaFailure(env, err)
	}
	provider, _ := view.Speaker()
	var made media.File
	if provider != media.Espeak {
		made, err = view.Spoken(ctx, env.CallID, speech)
		env.Source = &made.About
		if err != nil {
			return nil, mediaFailure(env, err)
		}
	}
	shown := args.Output
	if shown == "" {
		shown = path.Join(speechFolder, blobs.Digest([]byte(provider + "\x00" + args.Text))[:12]+media.Extension("audio/"+speech.Format))
	}
	box, name, err := mediaTarget(ctx, env, shown)
	if err != nil {
		return nil, err
	}
	if err := box.Files().Write(ctx, sandbox.FileWrite{Path: name, Data: made.Data}); err != nil { // with its directory
		return nil, fileFailure(err, "write", shown)
	}
	if provider == media.Espeak {
		made.About, err = view.Speak(ctx, box, name, speech)
		env.Source = &made.About
		if err != nil {
			return nil, mediaFailure(env, err)
		}
	}
	result := textToSpeechResult{
		Success: true, File: shown, Tag: "MEDIA:" + shown, Provider: provider, Voice: speech.Format == "opus", Seconds: made.About.Seconds,
	}
	if result.Voice {
		result.Tag = "[[audio_as_voice]]\n" + result.Tag
	}
	return result, nil
}
