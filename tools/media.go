package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/media"
	"trajgen/tools/web/source"
)

const (
	lookTimeout  = 4 * time.Minute // to fetch a file, and to ask the vision model
	makeTimeout  = 5 * time.Minute
	videoTimeout = 15 * time.Minute
	maxMedia     = 50 << 20 // bytes of an image or a video that is looked at
)

// mediaView is what the episode has for pictures and sounds.
func mediaView(env *registry.Env) (*media.View, error) {
	if view, ok := registry.Service[*media.View](env.Session); ok {
		return view, nil
	}
	return nil, registry.Failf("no_media", "this episode has nothing for pictures and sounds")
}

// mediaFailure is what an error of the media is for the model.
func mediaFailure(env *registry.Env, err error) error {
	view, known := webView(env)
	if known != nil {
		return known
	}
	if err = webFailure(view, err); err == nil {
		return nil
	}
	if f, ok := errors.AsType[*registry.Failure](err); ok {
		if f.Extra == nil {
			f.Extra = map[string]any{}
		}
		f.Extra["success"], f.Extra["error_type"] = false, f.Class
	}
	return err
}

// isURL says that a name is a URL and not a path.
func isURL(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "data:") || strings.Contains(lower, "://") && !strings.HasPrefix(lower, "file://")
}

// readMedia reads an image or a video that the model names: a file of the sandbox, a URL, or a data: URL.
func readMedia(ctx context.Context, env *registry.Env, name string, about *media.About) ([]byte, error) {
	switch {
	case !isURL(name):
		return readMediaFile(ctx, env, strings.TrimPrefix(name, "file://"))
	case strings.HasPrefix(strings.ToLower(name), "data:"):
		return media.DataURL(name)
	}
	view, err := webView(env)
	if err != nil {
		return nil, err
	}
	page, data, err := view.File(ctx, env.CallID, name, maxMedia)
	about.Mode, about.URL = view.Mode(), page.URL
	env.Source = about
	if page.FinalURL != page.URL {
		about.FinalURL = page.FinalURL
	}
	return data, err
}

func readMediaFile(ctx context.Context, env *registry.Env, shown string) ([]byte, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	name, err := resolve(box, shown)
	if err != nil {
		return nil, err
	}
	data, info, err := box.Files().Read(ctx, name, 0, maxMedia+1)
	switch {
	case err != nil:
		return nil, readFailure(ctx, box, err, name, shown)
	case secret(box.Layout(), name), secret(box.Layout(), info.Path):
		return nil, denied("refused to read %s: it is where programs keep keys and passwords", shown)
	case len(data) > maxMedia:
		return nil, source.Errorf(source.Agent, source.TooLarge, "%s has more than %d MB", shown, maxMedia>>20)
	}
	return data, nil
}

// mediaReads is the Access of a tool that looks at what one of its arguments names.
func mediaReads(argument string) func(json.RawMessage) registry.Access {
	return func(arguments json.RawMessage) (a registry.Access) {
		var given map[string]any
		_ = json.Unmarshal(arguments, &given) // which fit the schema
		if name, _ := given[argument].(string); name != "" && !isURL(name) {
			a.Reads = []string{strings.TrimPrefix(name, "file://")}
		}
		return a
	}
}

// mediaTarget is where a file that was made is written: the path with links resolved.
func mediaTarget(ctx context.Context, env *registry.Env, shown string) (sandbox.Sandbox, string, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, "", err
	}
	name, err := resolve(box, shown)
	if err != nil {
		return nil, "", err
	}
	if err := refuseProtected(box.Layout(), name, shown); err != nil {
		return nil, "", err
	}
	switch info, err := box.Files().Stat(ctx, name); {
	case noFile(err):
		name, _, err = writable(ctx, box, name, shown)
		return box, name, err
	case err != nil:
		return nil, "", fileFailure(err, "write", shown)
	case info.Mode.IsDir():
		return nil, "", registry.Failf("is_directory", "%s is a directory; name a file", shown)
	case info.Mode&fs.ModeType != 0:
		return nil, "", fileFailure(&fs.PathError{Op: "write", Path: shown, Err: sandbox.ErrNotRegular}, "write", shown)
	default:
		return box, info.Path, refuseProtected(box.Layout(), info.Path, shown)
	}
}

// saveMedia writes what was made to a file of the sandbox that is named after its content.
func saveMedia(ctx context.Context, env *registry.Env, dir string, made media.File, extension string) (shown string, err error) {
	shown = path.Join(dir, made.About.Digest[:12]+extension)
	box, name, err := mediaTarget(ctx, env, shown)
	if err != nil {
		return "", err
	}
	if err := box.Files().Write(ctx, sandbox.FileWrite{Path: name, Data: made.Data}); err != nil {
		return "", fileFailure(err, "write", shown)
	}
	return shown, nil
}
