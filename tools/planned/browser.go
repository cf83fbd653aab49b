package planned

import (
	"slices"

	"trajgen/registry"
)

// The tools that need a browser's own protocol stand in a toolset of their own.
const (
	browserToolset  = "browser"
	protocolToolset = "browser-cdp"
)

type elementRef struct {
	Ref string `json:"ref" doc:"The element, as the snapshot names it." example:"@e5"`
}

func browser() []registry.Tool {
	open := registry.Planned[struct {
		URL string `json:"url" doc:"Address of the page (http or https)."`
	}](registry.Definition{
		Name: "browser_navigate", Toolset: browserToolset, Description: navigate(true, true), Describe: describeNavigate,
	})
	return []registry.Tool{
		open,
		entry[struct {
			Full bool `json:"full,omitempty" doc:"The whole page instead of what can be acted on." default:"false"`
		}](browserToolset, "browser_snapshot", "The page as text, with a reference (@e1, @e2, ...) to each element that can be acted on."),
		entry[elementRef](browserToolset, "browser_click", "Click an element of the last snapshot."),
		entry[struct {
			Ref  string `json:"ref" doc:"The element, as the snapshot names it." example:"@e3"`
			Text string `json:"text" doc:"What to type."`
		}](browserToolset, "browser_type", "Type into a field, which is cleared first."),
		entry[struct {
			Direction string `json:"direction" doc:"Where to." enum:"up,down"`
		}](browserToolset, "browser_scroll", "Scroll the page by 500 pixels."),
		entry[none](browserToolset, "browser_back", "Go back to the page before."),
		entry[struct {
			Key string `json:"key" doc:"Name of the key." example:"Enter"`
		}](browserToolset, "browser_press", "Press a key."),
		entry[none](browserToolset, "browser_get_images", "List the images of the page with address, alternative text and size."),
		entry[struct {
			Question string `json:"question" doc:"What to find out about the page."`
			Annotate bool   `json:"annotate,omitempty" doc:"Number the elements in the picture." default:"false"`
		}](browserToolset, "browser_vision", "Take a picture of the page and answer a question about it."),
		entry[struct {
			Clear      bool   `json:"clear,omitempty" doc:"Forget the messages once they are read." default:"false"`
			Expression string `json:"expression,omitempty" doc:"JavaScript to evaluate in the page."`
		}](browserToolset, "browser_console", "Read the page's console messages and errors, or evaluate an expression."),
		entry[struct {
			Method   string         `json:"method" doc:"Method of the protocol." example:"Page.printToPDF"`
			Params   map[string]any `json:"params,omitempty" doc:"The method's parameters."`
			TargetID string         `json:"target_id,omitempty" doc:"Tab to speak to."`
			FrameID  string         `json:"frame_id,omitempty" doc:"Frame to speak to."`
			Timeout  int            `json:"timeout,omitempty" doc:"Seconds to wait." default:"30" min:"1" max:"300"`
		}](protocolToolset, "browser_cdp", "Send a command of the Chrome DevTools Protocol."),
		entry[struct {
			Action     string `json:"action" doc:"What to do." enum:"accept,dismiss"`
			PromptText string `json:"prompt_text,omitempty" doc:"Answer to a prompt."`
			DialogID   string `json:"dialog_id,omitempty" doc:"Which dialog, when several are open."`
		}](protocolToolset, "browser_dialog", "Answer a dialog of the page."),
	}
}

func describeNavigate(have []registry.Tool) string {
	has := func(name string) bool {
		return slices.ContainsFunc(have, func(t registry.Tool) bool { return t.Name == name })
	}
	return navigate(has("web_search"), has("web_extract"))
}

// navigate speaks of the quicker tools that there are.
func navigate(search, extract bool) string {
	text := "Open a page in the browser. Returns its title and a snapshot of it. Comes before all other browser tools."
	switch {
	case search && extract:
		text += " To find something or to read a page, web_search and web_extract are faster."
	case search:
		text += " To find something, web_search is faster."
	case extract:
		text += " To read a page, web_extract is faster."
	}
	return text
}
