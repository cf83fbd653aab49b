package planned

import "trajgen/registry"

func web() []registry.Tool {
	return []registry.Tool{
		entry[struct {
			Query string `json:"query" doc:"What to look for."`
			Limit int    `json:"limit,omitempty" doc:"Results at most." default:"5" min:"1" max:"100"`
		}]("web", "web_search", "Search the web. Returns titles, addresses and short descriptions."),
		entry[struct {
			URLs []string `json:"urls" doc:"Addresses of pages (http or https)." minitems:"1" maxitems:"5"`
		}]("web", "web_extract", "Read web pages as text. Long pages are cut or summarised."),
		entry[struct {
			Query              string   `json:"query" doc:"What to look for in posts."`
			AllowedHandles     []string `json:"allowed_x_handles,omitempty" doc:"Only posts of these accounts."`
			ExcludedHandles    []string `json:"excluded_x_handles,omitempty" doc:"No posts of these accounts."`
			FromDate           string   `json:"from_date,omitempty" doc:"First day, as YYYY-MM-DD."`
			ToDate             string   `json:"to_date,omitempty" doc:"Last day, as YYYY-MM-DD."`
			ImageUnderstanding bool     `json:"enable_image_understanding,omitempty" doc:"Look at the images of posts."`
			VideoUnderstanding bool     `json:"enable_video_understanding,omitempty" doc:"Look at the videos of posts."`
		}]("x_search", "x_search", "Search posts on X.", "XAI_API_KEY"),
	}
}
