// Package media makes pictures, speech and videos, and has models look at them: through providers, or with what is on the
// machine.
package media

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools/web"
)

// Config says what is opened.
type Config struct {
	Settings Settings
	Getenv   func(string) string
	Now      func() time.Time
	Vision   model.Model // looks at images and videos; nil without a vision model
	Shelf    *Shelf      // from which it reads them
	Replay   bool        // a recording answers in place of the providers: no key is needed
	Meter    model.Meter // pays for what providers make; nil pays nothing
}

// Media is what the tools of a run have for pictures and sounds. All episodes share it; each attempt has a View.
type Media struct {
	config Config
	live   *http.Transport
	large  chan struct{} // holds a token for each call that has an image or a video of a stranger in memory
}

// atOnce bounds their number, and so the memory.
const atOnce = 8

// Open opens what the settings name. Nothing is asked of a provider.
func Open(c Config) (*Media, error) {
	m := &Media{config: c, live: http.DefaultTransport.(*http.Transport).Clone(), large: make(chan struct{}, atOnce)}
	var problems []error
	for _, name := range []string{c.Settings.Image, c.Settings.Speech, c.Settings.Video} {
		if k, remote := kinds[name]; remote {
			env := cmp.Or(c.Settings.Providers[name].APIKeyEnv, k.keyEnv)
			if c.Getenv(env) == "" && c.Settings.Providers[name].BaseURL == "" && !c.Replay { // a server of one's own may want none
				problems = append(problems, fmt.Errorf("media provider %s needs a key: set %s", name, env))
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	problems = slices.CompactFunc(problems, func(a, b error) bool { return a.Error() == b.Error() })
	return m, errors.Join(problems...)
}

// Close ends the connections that are kept.
func (m *Media) Close() error {
	m.live.CloseIdleConnections()
	return nil
}

// View is the media of one attempt at an episode. Its methods may be called from many goroutines.
type View struct {
	*Media
	attempt Attempt
}

// Attempt is what a View needs to know of its attempt.
type Attempt struct {
	Web        *web.View // which its requests go through
	model.Side           // how it asks a model; outside of a run there is none
}

// View is the media of an attempt.
func (m *Media) View(a Attempt) *View { return &View{m, a} }

// Enter waits until a call may have an image or a video of a stranger in memory. The place is held until leave.
func (v *View) Enter(ctx context.Context) (leave func(), err error) {
	select {
	case v.large <- struct{}{}:
		return func() { <-v.large }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Painter is who makes images.
func (v *View) Painter() string { return cmp.Or(v.config.Settings.Image, Local) }

// About is what made or saw something, as the call's row has it.
type About struct {
	By         string            `json:"by,omitempty"` // the provider, and the version of our requests
	Model      string            `json:"model,omitempty"`
	Mode       string            `json:"mode,omitempty"` // of the web, where its requests went through it
	URL        string            `json:"url,omitempty"`  // where the file came from
	FinalURL   string            `json:"final_url,omitempty"`
	Type       string            `json:"type,omitempty"`
	Bytes      int               `json:"bytes,omitempty"`
	Digest     string            `json:"sha256,omitempty"`
	Width      int               `json:"width,omitempty"`
	Height     int               `json:"height,omitempty"`
	Seconds    float64           `json:"seconds,omitempty"`
	Characters int               `json:"characters,omitempty"` // that were spoken
	Revised    string            `json:"revised_prompt,omitempty"`
	Seed       *int64            `json:"seed,omitempty"`
	Asked      []episode.Inquiry `json:"asked,omitempty"`   // of models and providers that are paid for
	Threats    []string          `json:"threats,omitempty"` // what of an answer looks like an attack
}

// Weigh adds the size and the digest of a file.
func (a *About) Weigh(data []byte) {
	sum := sha256.Sum256(data)
	a.Bytes, a.Digest = len(data), hex.EncodeToString(sum[:])
}

// extensions of files, by their types.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif",
	"audio/wav": ".wav", "audio/mp3": ".mp3", "audio/opus": ".ogg", "audio/flac": ".flac", "audio/aac": ".aac",
	"video/mp4": ".mp4", "video/webm": ".webm", "video/quicktime": ".mov", "video/avi": ".avi",
}

// Extension is that of a file of a type, with its dot.
func Extension(kind string) string { return extensions[kind] }
