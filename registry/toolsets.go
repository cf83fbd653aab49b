package registry

import (
	"maps"
	"slices"
	"strings"
)

// The toolsets are data: a name here may belong to a tool that this version does not have, as distributions draw such toolsets.
// Toolset.Missing names those tools.

func words(s string) []string { return strings.Fields(s) }

// without is a list less some of its names.
func without(list []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(names, name) })
}

var (
	webTools    = words("web_search web_extract")
	fileTools   = words("read_file write_file patch search_files")
	skillTools  = words("skills_list skill_view skill_manage")
	homeTools   = words("ha_list_entities ha_get_state ha_list_services ha_call_service")
	kanbanTools = words("kanban_show kanban_list kanban_complete kanban_block kanban_heartbeat kanban_comment" +
		" kanban_create kanban_link kanban_unblock")
	browserTools = words("browser_navigate browser_snapshot browser_click browser_type browser_scroll browser_back" +
		" browser_press browser_get_images browser_vision browser_console browser_cdp browser_dialog")
	feishuTools = words("feishu_doc_read feishu_drive_list_comments feishu_drive_list_comment_replies" +
		" feishu_drive_reply_comment feishu_drive_add_comment")
	yuanbaoTools = words("yb_query_group_info yb_query_group_members yb_send_dm yb_search_sticker yb_send_sticker")
	rlTools      = words("rl_list_environments rl_select_environment rl_get_current_config rl_edit_config" +
		" rl_start_training rl_check_status rl_stop_training rl_get_results rl_list_runs rl_test_inference")

	codingTools = slices.Concat(webTools, words("terminal process read_terminal"), fileTools, words("vision_analyze"), skillTools,
		browserTools, words("todo memory session_search clarify execute_code delegate_task"))
	acpTools  = without(codingTools, "read_terminal", "clarify")
	coreTools = slices.Concat(codingTools, words("image_generate text_to_speech cronjob send_message computer_use"), homeTools,
		kanbanTools)
)

var staticToolsets = map[string]ToolsetDef{
	"web":               {Description: "Search the web and read pages", Tools: webTools},
	"crawl":             {Description: "Read the pages of a site", Tools: words("web_crawl")},
	"corpus":            {Description: "Search a fixed set of documents and read them; for runs with a corpus"},
	"search":            {Description: "Search the web", Tools: words("web_search")},
	"x_search":          {Description: "Search posts on X", Tools: words("x_search")},
	"vision":            {Description: "Look at images", Tools: words("vision_analyze")},
	"video":             {Description: "Look at videos", Tools: words("video_analyze")},
	"image_gen":         {Description: "Make images", Tools: words("image_generate")},
	"video_gen":         {Description: "Make videos", Tools: words("video_generate")},
	"computer_use":      {Description: "Control a desktop", Tools: words("computer_use")},
	"terminal":          {Description: "Run commands and manage processes", Tools: words("terminal process read_terminal")},
	"moa":               {Description: "Ask several models at once", Tools: words("mixture_of_agents")},
	"skills":            {Description: "Read and manage skill documents", Tools: skillTools},
	"browser":           {Description: "Control a web browser", Tools: slices.Concat(browserTools, words("web_search"))},
	"browser-more":      {Description: "More of the web browser: its tabs, uploads, waiting"},
	"cronjob":           {Description: "Schedule jobs", Tools: words("cronjob")},
	"messaging":         {Description: "Send messages", Tools: words("send_message")},
	"file":              {Description: "Read, write, edit and search files", Tools: fileTools},
	"tts":               {Description: "Turn text into speech", Tools: words("text_to_speech")},
	"todo":              {Description: "Keep a list of what is to be done", Tools: words("todo")},
	"memory":            {Description: "Remember across sessions", Tools: words("memory")},
	"context_engine":    {Description: "Tools of a context engine, filled at run time"},
	"session_search":    {Description: "Search earlier sessions", Tools: words("session_search")},
	"clarify":           {Description: "Ask the user", Tools: words("clarify")},
	"code_execution":    {Description: "Run Python that calls tools", Tools: words("execute_code")},
	"delegation":        {Description: "Hand work to subagents", Tools: words("delegate_task")},
	"homeassistant":     {Description: "Control a smart home", Tools: homeTools},
	"kanban":            {Description: "Work on a kanban board", Tools: kanbanTools},
	"discord":           {Description: "Read and write on Discord", Tools: words("discord")},
	"discord_admin":     {Description: "Administer a Discord server", Tools: words("discord_admin")},
	"yuanbao":           {Description: "Yuanbao groups and stickers", Tools: yuanbaoTools},
	"feishu_doc":        {Description: "Read Feishu documents", Tools: words("feishu_doc_read")},
	"feishu_drive":      {Description: "Comment on Feishu documents", Tools: feishuTools[1:]},
	"spotify":           {Description: "Control Spotify", Tools: words("spotify_playback spotify_devices spotify_queue spotify_search spotify_playlists spotify_albums spotify_library")},
	"rl":                {Description: "Train models with reinforcement learning", Tools: rlTools},
	"debugging":         {Description: "Commands, files and the web", Tools: words("terminal process"), Includes: words("web file")},
	"safe":              {Description: "No commands and no files", Includes: words("web vision image_gen")},
	"coding":            {Description: "What a coding agent needs", Tools: codingTools},
	"hermes-acp":        {Description: "Preset of the editor integration", Tools: acpTools},
	"hermes-api-server": {Description: "Preset of the API server", Tools: slices.Concat(acpTools, words("image_generate cronjob"), homeTools)},
	"hermes-webhook":    {Description: "Preset of webhooks", Tools: slices.Concat(webTools, words("vision_analyze clarify"))},
	"hermes-discord":    {Description: "Preset of Discord", Tools: slices.Concat(coreTools, words("discord discord_admin"))},
	"hermes-feishu":     {Description: "Preset of Feishu", Tools: slices.Concat(coreTools, feishuTools)},
	"hermes-yuanbao":    {Description: "Preset of Yuanbao", Tools: slices.Concat(coreTools, yuanbaoTools)},
	"hermes-gateway":    {Description: "All messaging presets", Includes: gatewayPresets},
}

// corePresets have exactly the core tools.
var corePresets = words("hermes-cli hermes-cron hermes-telegram hermes-whatsapp hermes-slack hermes-signal" +
	" hermes-bluebubbles hermes-homeassistant hermes-email hermes-mattermost hermes-matrix hermes-dingtalk" +
	" hermes-weixin hermes-qqbot hermes-wecom hermes-wecom-callback hermes-sms")

var gatewayPresets = words("hermes-telegram hermes-discord hermes-whatsapp hermes-slack hermes-signal" +
	" hermes-bluebubbles hermes-homeassistant hermes-email hermes-sms hermes-mattermost hermes-matrix hermes-dingtalk" +
	" hermes-feishu hermes-wecom hermes-wecom-callback hermes-weixin hermes-qqbot hermes-webhook hermes-yuanbao")

// legacy are names of older versions: understood, never listed.
var legacy = map[string][]string{
	"web_tools":      webTools,
	"terminal_tools": words("terminal"),
	"vision_tools":   words("vision_analyze"),
	"moa_tools":      words("mixture_of_agents"),
	"image_tools":    words("image_generate"),
	"skills_tools":   skillTools,
	"browser_tools":  without(browserTools, "browser_cdp", "browser_dialog"),
	"cronjob_tools":  words("cronjob"),
	"file_tools":     fileTools,
	"tts_tools":      words("text_to_speech"),
	"rl_tools":       rlTools,
}

func builtinToolsets() map[string]ToolsetDef {
	all := maps.Clone(staticToolsets)
	for _, name := range corePresets {
		all[name] = ToolsetDef{Description: "Preset of " + strings.TrimPrefix(name, "hermes-"), Tools: coreTools}
	}
	return all
}
