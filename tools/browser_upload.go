package tools

import (
	"context"
	"errors"
	"io/fs"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_upload", moreToolset,
		"Gives files of the sandbox to a file field of the page, or to the file picker that a click on an element opens."), browserUpload))
}

type browserUploadArgs struct {
	Ref   string   `json:"ref" alias:"element" doc:"The field or button, by its ref from the snapshot, e.g. e12." minlen:"1" maxlen:"500"`
	Paths []string `json:"paths" alias:"files,path" doc:"The files, as paths in the sandbox." minitems:"1" maxitems:"20"`
}

type browserUploadResult struct {
	browserResult
	Uploaded []string `json:"uploaded"`
	Element  string   `json:"element"`
	URL      string   `json:"url"`
}

func browserUpload(ctx context.Context, env *registry.Env, args browserUploadArgs) (any, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	result := browserUploadResult{}
	for _, path := range args.Paths {
		info, err := box.Files().Stat(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, registry.Failf("not_found", "there is no file %s in the sandbox", path)
		case err != nil:
			return nil, err
		case !info.Mode.IsRegular():
			return nil, registry.Failf("not_a_file", "%s is not a file", path)
		}
		result.Uploaded = append(result.Uploaded, info.Path)
	}
	b, err := browserOf(env.Session)
	if err != nil {
		return nil, err
	}
	for _, path := range result.Uploaded {
		b.Give(path, func(ctx context.Context, most int64) ([]byte, error) {
			data, _, err := box.Files().Read(ctx, path, 0, most)
			return data, err
		})
	}
	err = act(ctx, env, &result.browserResult, &result.URL, func(ctx context.Context, p browser.Page) (err error) {
		result.Element, err = p.Upload(ctx, args.Ref, result.Uploaded)
		return err
	})
	return result, err
}
