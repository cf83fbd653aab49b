package media

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/tools/web/provider"
)

// Settings say who makes and sees pictures, speech and videos, as in the run file.
type Settings struct {
	Image      string `yaml:"image" flag:"image-provider" experiment:"given" help:"who makes images: local (default; draws the words of the prompt and shapes), openai or fal"`
	ImageModel string `yaml:"image_model" experiment:"given"`

	Speech      string `yaml:"speech" flag:"speech-provider" experiment:"given" help:"who speaks: espeak (default; espeak-ng in the sandbox), openai or elevenlabs"`
	SpeechModel string `yaml:"speech_model" experiment:"given"`
	Voice       string `yaml:"voice" flag:"speech-voice" experiment:"given"` // a name of the provider's

	Video      string `yaml:"video" flag:"video-provider" experiment:"given"` // who makes videos: fal
	VideoModel string `yaml:"video_model" experiment:"given"`

	VisionModel     string `yaml:"vision_model" experiment:"given" help:"model that looks at images and videos where the agent's does not take them"`
	VisionBaseURL   string `yaml:"vision_base_url" experiment:"no" help:"endpoint of the vision model (default: base_url)"`
	VisionAPIKeyEnv string `yaml:"vision_api_key_env" experiment:"no" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`

	Providers map[string]Provider `yaml:"providers,omitempty" flag:"media-providers" experiment:"no"`
}

// Provider says where a provider is and how it is asked, where that is not what is usual.
type Provider struct {
	BaseURL   string `yaml:"base_url,omitempty"`
	APIKeyEnv string `yaml:"api_key_env,omitempty"`
}

// The providers that need no key.
const (
	Local  = "local"  // draws
	Espeak = "espeak" // speaks
)

// kind is a provider of others.
type kind struct {
	base, keyEnv string
	auth         string // the header that the key stands in, with what is before it
	list         string // path of a list that is free and wants the key; "" without
	image        string // default model for images; "" for one that makes none. The others likewise.
	speech       string
	video        string
	voice        string
	formats      []string // of speech, the usual one first
}

var kinds = map[string]kind{
	"openai": {
		base: "https://api.openai.com/v1", keyEnv: "OPENAI_API_KEY", list: "/models", image: "gpt-image-1", speech: "gpt-4o-mini-tts", voice: "alloy",
		formats: []string{"mp3", "wav", "opus", "flac", "aac"},
	},
	"fal": {
		base: "https://fal.run", keyEnv: "FAL_KEY", auth: "Authorization:Key ", image: "fal-ai/flux/dev", video: "fal-ai/veo3/fast",
	},
	"elevenlabs": {
		base: "https://api.elevenlabs.io/v1", keyEnv: "ELEVENLABS_API_KEY", auth: "xi-api-key:", list: "/models",
		speech: "eleven_multilingual_v2", voice: "21m00Tcm4TlvDq8ikWAM", formats: []string{"mp3", "opus"},
	},
}

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("media: "+format, args...))
		}
	}
	for _, use := range []struct {
		name, chosen, own string
		model             func(kind) string
	}{
		{"image", s.Image, Local, func(k kind) string { return k.image }},
		{"speech", s.Speech, Espeak, func(k kind) string { return k.speech }},
		{"video", s.Video, "", func(k kind) string { return k.video }},
	} {
		var have []string
		if use.own != "" {
			have = append(have, use.own)
		}
		for _, name := range slices.Sorted(maps.Keys(kinds)) {
			if use.model(kinds[name]) != "" {
				have = append(have, name)
			}
		}
		unknown := use.chosen != "" && !slices.Contains(have, use.chosen)
		bad(unknown, "unknown %s provider %q (have %s)", use.name, use.chosen, strings.Join(have, ", "))
	}
	keyless := func(name string) bool { return name == "" || name == Local || name == Espeak }
	bad(s.ImageModel != "" && keyless(s.Image), "image_model is for a provider of images (--image-provider openai)")
	bad(s.SpeechModel != "" && keyless(s.Speech), "speech_model is for a provider of speech (--speech-provider openai)")
	bad(s.VideoModel != "" && s.Video == "", "video_model is for a provider of videos (video: fal)")
	bad(s.VisionModel == "" && (s.VisionBaseURL != "" || s.VisionAPIKeyEnv != ""),
		"vision_base_url and vision_api_key_env say where the vision model is: give --vision-model NAME too")
	for _, name := range slices.Sorted(maps.Keys(s.Providers)) {
		_, known := kinds[name]
		bad(!known, "unknown provider %q (have %s)", name, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	return errors.Join(problems...)
}

// Paid is a model that is paid for by the piece, and by which: image, characters or second.
type Paid struct{ Model, By string }

// In says whether a price tells what the model's pieces cost. One without any amount says that it costs nothing.
func (p Paid) In(price episode.Price) bool {
	byTokens := p.By == "image" && price.Input+price.Output > 0 // which providers count for images alone
	return byTokens || price.Amounts()[p.By] > 0 || price == (episode.Price{Date: price.Date})
}

// Paid are the models that the run's providers use.
func (s Settings) Paid() (all []Paid) {
	for _, use := range []struct{ model, usual, by string }{
		{s.ImageModel, kinds[s.Image].image, "image"},
		{s.SpeechModel, kinds[s.Speech].speech, "characters"},
		{s.VideoModel, kinds[s.Video].video, "second"},
	} {
		if use.usual != "" {
			all = append(all, Paid{cmp.Or(use.model, use.usual), use.by})
		}
	}
	return all
}

// Lacking says why a tool cannot be called.
func (s Settings) Lacking() (tool, why string) {
	if s.Video != "" {
		return "", ""
	}
	return "video_generate", "it needs a provider, in the run file as media: {video: fal}"
}

// Keys are the variables of all providers, for each of their uses.
func (s Settings) Keys() (all []provider.Key) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k, own := kinds[name], s.Providers[name]
		key := provider.Key{Service: name, Variable: cmp.Or(own.APIKeyEnv, k.keyEnv)}
		if k.list != "" {
			key.Try = provider.Get(k.list, provider.ClientConfig{
				Config:   provider.Config{Name: name, BaseURL: cmp.Or(own.BaseURL, k.base)},
				Variable: key.Variable, Auth: cmp.Or(k.auth, "Authorization:Bearer "),
			})
		}
		for _, use := range []struct{ toolset, setting, model string }{
			{"image_gen", "image", k.image}, {"tts", "speech", k.speech}, {"video_gen", "video", k.video},
		} {
			if use.model != "" {
				key.Toolset, key.Use = use.toolset, fmt.Sprintf("media: {%s: %s}", use.setting, name)
				all = append(all, key)
			}
		}
	}
	return append(all, provider.Key{
		Toolset: "vision", Service: "a model that sees, where the agent's does not", Variable: s.VisionAPIKeyEnv, Use: "media: {vision_model: VALUE}", Ask: "Its name",
	})
}

// Variables are the variables whose values are keys of providers and of the model that sees.
func (s Settings) Variables() []string {
	all := []string{}
	for _, key := range s.Keys() {
		all = append(all, key.Variable)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}
