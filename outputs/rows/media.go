package rows

import "trajgen/pipeline/episode"

// Origin is where an image of an episode came from: the tool that showed it, or its prompt.
func Origin(ep *episode.Episode, sha256 string) string {
	for i := range ep.Calls {
		for _, image := range ep.Calls[i].Shown() {
			if image.SHA256 == sha256 {
				return ep.Calls[i].Name
			}
		}
	}
	return "prompt"
}
