package planned

import "trajgen/registry"

func media() []registry.Tool {
	return []registry.Tool{
		entry[struct {
			ImageURL string `json:"image_url" doc:"Address of the image, or its path in the sandbox."`
			Question string `json:"question" doc:"What to find out about it."`
		}]("vision", "vision_analyze", "Look at an image and answer a question about it."),
		entry[struct {
			VideoURL string `json:"video_url" doc:"Address of the video, or its path in the sandbox."`
			Question string `json:"question" doc:"What to find out about it."`
		}]("video", "video_analyze", "Look at a video and answer a question about it."),
		entry[struct {
			Prompt      string `json:"prompt" doc:"What the image should show." minlen:"1"`
			AspectRatio string `json:"aspect_ratio,omitempty" doc:"Shape of the image." enum:"landscape,square,portrait" default:"landscape"`
		}]("image_gen", "image_generate", "Make an image from a description."),
		entry[struct {
			Prompt         string   `json:"prompt" doc:"What the video should show." minlen:"1"`
			ImageURL       string   `json:"image_url,omitempty" doc:"Image to begin with."`
			ReferenceURLs  []string `json:"reference_image_urls,omitempty" doc:"Images to follow in style or content."`
			Duration       int      `json:"duration,omitempty" doc:"Seconds." min:"1"`
			AspectRatio    string   `json:"aspect_ratio,omitempty" doc:"Shape, such as 16:9."`
			Resolution     string   `json:"resolution,omitempty" doc:"Size, such as 720p."`
			NegativePrompt string   `json:"negative_prompt,omitempty" doc:"What it should not show."`
			Audio          bool     `json:"audio,omitempty" doc:"With sound."`
			Seed           int      `json:"seed,omitempty" doc:"Seed of the draw."`
			Model          string   `json:"model,omitempty" doc:"Which model makes it."`
		}]("video_gen", "video_generate", "Make a video from a description."),
		entry[struct {
			Text       string `json:"text" doc:"What to say."`
			OutputPath string `json:"output_path,omitempty" doc:"Where in the sandbox to write the sound file."`
		}]("tts", "text_to_speech", "Turn text into a sound file of speech."),
	}
}
