package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"trajgen/outputs/media/picture"
	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// shelf keeps images without looking at them.
type shelf struct{ err error }

func (s shelf) Keep(_ string, data []byte) (episode.Part, error) {
	return episode.Part{Type: episode.PartImage, SHA256: string(data)}, s.err
}

func TestAttach(t *testing.T) {
	sees := registry.SessionConfig{Sees: true, Images: shelf{}}
	tests := []struct {
		name   string
		config registry.SessionConfig
		images []string
		shown  int
		class  string
		fault  string
	}{
		{"none", sees, nil, 0, "", ""},
		{"two", sees, []string{"a", "b"}, 2, "", ""},
		{"too many", sees, strings.Split("abcdefghi", ""), 8, "too_many_images", ""},
		{"a model that takes none", registry.SessionConfig{Images: shelf{}}, []string{"a"}, 0, "no_vision", ""},
		{"nowhere to keep it", registry.SessionConfig{Sees: true}, []string{"a"}, 0, "no_vision", ""},
		{"something else than an image", registry.SessionConfig{Sees: true, Images: shelf{&picture.Unusable{Reason: "it is text"}}}, []string{"a"}, 0, "bad_image", ""},
		{"a full disk", registry.SessionConfig{Sees: true, Images: shelf{errors.New("no space left")}}, []string{"a"}, 0, "image_store", "image_store"},
	}
	for _, tt := range tests {
		s := session(t, tt.config, tool("look", func(_ context.Context, env *registry.Env) (any, error) {
			if env.Sees() != tt.config.Sees {
				t.Errorf("%s: Sees is %v", tt.name, env.Sees())
			}
			for _, image := range tt.images {
				if err := env.Attach(registry.Image{MIME: "image/png", Data: []byte(image)}); err != nil {
					return nil, err
				}
			}
			return none{}, nil
		}))
		got := call(t, s, "look", "")
		if len(got.Images) != tt.shown || got.ErrorClass != tt.class {
			t.Errorf("%s: shows %d images, class %q (%s); want %d, %q", tt.name, len(got.Images), got.ErrorClass, got.Result, tt.shown, tt.class)
		}
		fault := ""
		if f := s.Fault(); f != nil {
			fault = f.Class
		}
		if fault != tt.fault {
			t.Errorf("%s: fault %q, want %q", tt.name, fault, tt.fault)
		}
	}
}

// TestAttachNested holds that a script's call shows the model nothing, as a program gets its result.
func TestAttachNested(t *testing.T) {
	s := session(t, registry.SessionConfig{Sees: true, Images: shelf{}}, tool("look", func(_ context.Context, env *registry.Env) (any, error) {
		return none{}, env.Attach(registry.Image{Data: []byte("a")})
	}))
	if got := s.Call(t.Context(), registry.Request{ID: "b", Parent: "a", Name: "look"}); got.ErrorClass != "no_vision" || len(got.Images) != 0 {
		t.Errorf("%s, %d images", got.Result, len(got.Images))
	}
}
