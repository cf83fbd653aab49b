package planned

import "trajgen/registry"

const spotifyToolset = "spotify"

func spotify() []registry.Tool {
	return []registry.Tool{
		entry[struct {
			Action     string   `json:"action" doc:"What to do." enum:"get_state,get_currently_playing,play,pause,next,previous,seek,set_repeat,set_shuffle,set_volume,recently_played"`
			DeviceID   string   `json:"device_id,omitempty" doc:"Where."`
			ContextURI string   `json:"context_uri,omitempty" doc:"Album, artist or playlist to play."`
			URIs       []string `json:"uris,omitempty" doc:"Tracks to play."`
			PositionMS int      `json:"position_ms,omitempty" doc:"Where in the track." min:"0"`
			Volume     int      `json:"volume_percent,omitempty" doc:"How loud." min:"0" max:"100"`
			State      string   `json:"state,omitempty" doc:"Of repeat or shuffle."`
			Limit      int      `json:"limit,omitempty" doc:"Entries at most." min:"1" max:"50"`
		}](spotifyToolset, "spotify_playback", "See and control what is playing."),
		entry[struct {
			Action   string `json:"action" doc:"What to do." enum:"list,transfer"`
			DeviceID string `json:"device_id,omitempty" doc:"Where playing goes on."`
			Play     bool   `json:"play,omitempty" doc:"Begin to play there."`
		}](spotifyToolset, "spotify_devices", "List devices, or play on another one."),
		entry[struct {
			Action   string `json:"action" doc:"What to do." enum:"get,add"`
			URI      string `json:"uri,omitempty" doc:"Track to add."`
			DeviceID string `json:"device_id,omitempty" doc:"Where."`
		}](spotifyToolset, "spotify_queue", "See the queue, or add to it."),
		entry[struct {
			Query  string   `json:"query" doc:"What to look for."`
			Types  []string `json:"types,omitempty" doc:"Of which kinds." enum:"album,artist,playlist,track,show,episode"`
			Limit  int      `json:"limit,omitempty" doc:"Results at most." min:"1" max:"50"`
			Offset int      `json:"offset,omitempty" doc:"Results to pass over." min:"0"`
		}](spotifyToolset, "spotify_search", "Search the catalogue."),
		entry[struct {
			Action     string   `json:"action" doc:"What to do." enum:"list,get,create,add_items,remove_items,update_details"`
			PlaylistID string   `json:"playlist_id,omitempty" doc:"Which playlist."`
			Name       string   `json:"name,omitempty" doc:"Its name."`
			Text       string   `json:"description,omitempty" doc:"Its description."`
			Public     bool     `json:"public,omitempty" doc:"Everybody can see it."`
			URIs       []string `json:"uris,omitempty" doc:"Tracks to add or remove."`
			Limit      int      `json:"limit,omitempty" doc:"Entries at most." min:"1" max:"50"`
		}](spotifyToolset, "spotify_playlists", "Read and change playlists."),
		entry[struct {
			Action  string `json:"action" doc:"What to do." enum:"get,tracks"`
			AlbumID string `json:"album_id" doc:"Which album."`
			Limit   int    `json:"limit,omitempty" doc:"Entries at most." min:"1" max:"50"`
		}](spotifyToolset, "spotify_albums", "Read an album."),
		entry[struct {
			Kind   string   `json:"kind" doc:"What." enum:"tracks,albums"`
			Action string   `json:"action" doc:"What to do." enum:"list,save,remove"`
			IDs    []string `json:"ids,omitempty" doc:"What to save or remove."`
			Limit  int      `json:"limit,omitempty" doc:"Entries at most." min:"1" max:"50"`
		}](spotifyToolset, "spotify_library", "Read and change what is saved."),
	}
}
