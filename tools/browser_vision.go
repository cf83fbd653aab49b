package tools

import (
	"context"
	"path"

	"trajgen/outputs/log/blobs"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/browser"
	"trajgen/tools/media"
)

func init() {
	add(registry.Define(browserTool("browser_vision", browserToolset,
		"Takes a picture of what is in view of the current page and shows it to you, or answers a question about it. For what a snapshot "+
			"cannot tell: a canvas, a chart, how things look."), browserVision))
}

type browserVisionArgs struct {
	Question string `json:"question" alias:"prompt,query" doc:"What to find out from the picture." minlen:"1" maxlen:"10000"`
	Annotate bool   `json:"annotate,omitempty" doc:"Draw the refs of the snapshot over their elements."`
}

type browserVisionResult struct {
	browserResult
	Analysis string `json:"analysis,omitempty"`
	Path     string `json:"screenshot_path,omitempty"` // in the sandbox
	URL      string `json:"url"`
}

func browserVision(ctx context.Context, env *registry.Env, args browserVisionArgs) (any, error) {
	var result browserVisionResult
	var shot []byte
	report, err := onTab(ctx, env, &result.browserResult, browser.CommandTime, func(ctx context.Context, t *browser.Tab) (err error) {
		shot, err = t.Page().Screenshot(ctx, args.Annotate)
		return err
	})
	if err != nil {
		return nil, err
	}
	if result.URL = report.URL; shot == nil {
		return result, nil // a dialog stops the page
	}
	if result.Path, err = saveShot(ctx, env, shot); err != nil {
		return nil, err
	}
	seen := &media.About{}
	result.Analysis, err = media.Look(ctx, env, registry.Image{MIME: "image/png", Data: shot}, args.Question, seen)
	if about, ok := env.Source.(*browserAbout); ok {
		about.Asked, about.Threats = seen.Asked, suspect(about.Threats, result.Analysis)
	}
	if err != nil {
		return nil, mediaFailure(env, err)
	}
	return result, nil
}

// saveShot keeps a picture in the sandbox under a name that depends on nothing but the picture.
func saveShot(ctx context.Context, env *registry.Env, shot []byte) (name string, err error) {
	sum := blobs.Digest(shot)
	if about, ok := env.Source.(*browserAbout); ok {
		about.Screenshot = sum
	}
	box, err := env.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	name = path.Join(box.Layout().Tmp, "screenshots", sum[:12]+".png")
	if err := box.Files().Write(ctx, sandbox.FileWrite{Path: name, Data: shot}); err != nil {
		return "", fileFailure(err, "write", name)
	}
	return name, nil
}
