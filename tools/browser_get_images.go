package tools

import (
	"context"
	"fmt"

	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/browser/page"
)

func init() {
	add(registry.Define(browserTool("browser_get_images", browserToolset,
		"Lists the images of the current page with their addresses, descriptions and sizes, those in view first."), browserGetImages))
}

type browserGetImagesArgs struct{}

type browserGetImagesResult struct {
	browserResult
	Images []page.Image `json:"images"`
	Count  int          `json:"count"`
}

func browserGetImages(ctx context.Context, env *registry.Env, _ browserGetImagesArgs) (any, error) {
	result := browserGetImagesResult{Images: []page.Image{}}
	_, err := onTab(ctx, env, &result.browserResult, browser.CommandTime, func(ctx context.Context, t *browser.Tab) error {
		images, count, err := t.Page().Images(ctx)
		result.Images, result.Count = append(result.Images, images...), count
		return err
	}, func() (text string) {
		for _, image := range result.Images {
			text += image.Alt + "\n"
		}
		return text
	})
	if result.Count > len(result.Images) {
		result.Notes = append(result.Notes, fmt.Sprintf("%d more images are not listed.", result.Count-len(result.Images)))
	}
	return result, err
}
