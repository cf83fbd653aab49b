package tools

import (
	"strings"

	"trajgen/registry"
)

// planned are tools that toolsets name and that are outside of what trajgen is for: services and screens of one person. A model that
// calls one is told so.
var planned = []struct {
	toolset, names string
}{
	{toolset: "x_search", names: "x_search"},
	{toolset: "computer_use", names: "computer_use"},
	{toolset: "terminal", names: "read_terminal"},
	{toolset: "kanban", names: "kanban_show kanban_list kanban_complete kanban_block kanban_heartbeat kanban_comment kanban_create" +
		" kanban_link kanban_unblock"},
	{toolset: "discord", names: "discord"},
	{toolset: "discord_admin", names: "discord_admin"},
	{toolset: "feishu_doc", names: "feishu_doc_read"},
	{toolset: "feishu_drive", names: "feishu_drive_list_comments feishu_drive_list_comment_replies feishu_drive_reply_comment" +
		" feishu_drive_add_comment"},
	{toolset: "hermes-yuanbao", names: "yb_query_group_info yb_query_group_members yb_send_dm yb_search_sticker yb_send_sticker"},
	{toolset: "spotify", names: "spotify_playback spotify_devices spotify_queue spotify_search spotify_playlists spotify_albums" +
		" spotify_library"},
}

func plannedTools() []registry.Tool {
	var all []registry.Tool
	for _, set := range planned {
		for name := range strings.FieldsSeq(set.names) {
			all = append(all, registry.Planned(registry.Definition{
				Name: name, Toolset: set.toolset, Description: "A tool that trajgen knows by its name alone.",
			}))
		}
	}
	return all
}
