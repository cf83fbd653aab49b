package tools_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/distributions"
	"trajgen/registry"
	"trajgen/tools"
)

// What the names of toolsets have meant to those who use them, spelt out once more: the table in package registry is
// made of shared lists, and a slip in one would change what every run of a distribution gets.
const (
	browserTwelve = "browser_back browser_cdp browser_click browser_console browser_dialog browser_get_images browser_navigate" +
		" browser_press browser_scroll browser_snapshot browser_type browser_vision"
	fileFour   = "patch read_file search_files write_file"
	homeFour   = "ha_call_service ha_get_state ha_list_entities ha_list_services"
	kanbanNine = "kanban_block kanban_comment kanban_complete kanban_create kanban_heartbeat kanban_link kanban_list" +
		" kanban_show kanban_unblock"
	skillsThree = "skill_manage skill_view skills_list"
	webTwo      = "web_extract web_search"
	feishuFive  = "feishu_doc_read feishu_drive_add_comment feishu_drive_list_comment_replies feishu_drive_list_comments" +
		" feishu_drive_reply_comment"
	yuanbaoFive = "yb_query_group_info yb_query_group_members yb_search_sticker yb_send_dm yb_send_sticker"
	rlTen       = "rl_check_status rl_edit_config rl_get_current_config rl_get_results rl_list_environments rl_list_runs" +
		" rl_select_environment rl_start_training rl_stop_training rl_test_inference"
	spotifySeven = "spotify_albums spotify_devices spotify_library spotify_playback spotify_playlists spotify_queue spotify_search"

	acp29    = webTwo + " terminal process " + fileFour + " vision_analyze " + skillsThree + " " + browserTwelve + " todo memory session_search execute_code delegate_task"
	coding31 = acp29 + " read_terminal clarify"
	core49   = coding31 + " image_generate text_to_speech cronjob send_message computer_use " + homeFour + " " + kanbanNine
)

var catalogue = map[string]string{
	"web": webTwo, "search": "web_search", "x_search": "x_search", "vision": "vision_analyze", "video": "video_analyze",
	"image_gen": "image_generate", "video_gen": "video_generate", "computer_use": "computer_use",
	"terminal": "terminal process read_terminal", "moa": "mixture_of_agents", "skills": skillsThree,
	"browser": browserTwelve + " web_search", "cronjob": "cronjob", "messaging": "send_message", "file": fileFour,
	"tts": "text_to_speech", "todo": "todo", "memory": "memory", "context_engine": "", "session_search": "session_search",
	"clarify": "clarify", "code_execution": "execute_code", "delegation": "delegate_task", "homeassistant": homeFour,
	"kanban": kanbanNine, "discord": "discord", "discord_admin": "discord_admin", "yuanbao": yuanbaoFive,
	"feishu_doc": "feishu_doc_read", "feishu_drive": strings.TrimPrefix(feishuFive, "feishu_doc_read "), "spotify": spotifySeven,
	"rl": rlTen,

	"debugging": "terminal process " + webTwo + " " + fileFour, "safe": webTwo + " vision_analyze image_generate",
	"coding": coding31, "hermes-acp": acp29, "hermes-api-server": acp29 + " image_generate cronjob " + homeFour,
	"hermes-webhook": webTwo + " vision_analyze clarify",
	"hermes-discord": core49 + " discord discord_admin", "hermes-feishu": core49 + " " + feishuFive,
	"hermes-yuanbao": core49 + " " + yuanbaoFive,
	"hermes-gateway": core49 + " discord discord_admin " + feishuFive + " " + yuanbaoFive,

	"hermes-cli": core49, "hermes-cron": core49, "hermes-telegram": core49, "hermes-whatsapp": core49, "hermes-slack": core49,
	"hermes-signal": core49, "hermes-bluebubbles": core49, "hermes-homeassistant": core49, "hermes-email": core49,
	"hermes-mattermost": core49, "hermes-matrix": core49, "hermes-dingtalk": core49, "hermes-weixin": core49,
	"hermes-qqbot": core49, "hermes-wecom": core49, "hermes-wecom-callback": core49, "hermes-sms": core49,

	// The tools of a browser's own protocol say so in their entries.
	"browser-cdp": "browser_cdp browser_dialog",

	// Ours alone.
	"crawl": "web_crawl", "corpus": "", "browser-more": "browser_tabs browser_upload browser_wait browser_hover browser_drag",
}

// Understood and not listed.
var legacyNames = map[string]string{
	"web_tools": webTwo, "terminal_tools": "terminal", "vision_tools": "vision_analyze", "moa_tools": "mixture_of_agents",
	"image_tools": "image_generate", "skills_tools": skillsThree, "cronjob_tools": "cronjob", "file_tools": fileFour,
	"tts_tools": "text_to_speech", "rl_tools": rlTen,
	"browser_tools": strings.TrimSuffix(strings.NewReplacer("browser_cdp ", "", "browser_dialog ", "").Replace(browserTwelve+" "), " "),
}

func TestCatalogue(t *testing.T) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range merged(catalogue, legacyNames) {
		got, err := reg.Resolve([]string{name}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wanted := slices.DeleteFunc(strings.Fields(want), byName(reg))
		if diff := cmp.Diff(slices.Compact(slices.Sorted(slices.Values(wanted))), got, cmp.Transformer("nil", func(s []string) []string {
			return append([]string{}, s...)
		})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var listed []string
	for _, info := range reg.Toolsets() {
		listed = append(listed, info.Name)
		if info.Count != len(info.Resolved) || info.Composite != (len(info.Includes) > 0) {
			t.Errorf("%s: %+v", info.Name, info)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(catalogue)), listed); diff != "" {
		t.Errorf("toolsets (-want +listed):\n%s", diff)
	}
	for name, count := range map[string]int{"all": 88, "*": 88, "hermes-cli": 49, "hermes-discord": 51, "hermes-feishu": 54,
		"hermes-yuanbao": 54, "coding": 31, "hermes-acp": 29, "hermes-api-server": 35, "browser": 13} {
		outside := 0
		for _, tool := range reg.Tools() {
			if byName(reg)(tool.Name) && (name == "all" || name == "*" || slices.Contains(strings.Fields(catalogue[name]), tool.Name)) {
				outside++
			}
		}
		if got, err := reg.Resolve([]string{name}, nil); err != nil || len(got)+outside != count {
			t.Errorf("%s has %d tools beside %d that are outside, want %d (%v)", name, len(got), outside, count, err)
		}
	}
}

// byName says which tools trajgen knows by their names alone.
func byName(reg *registry.Registry) func(string) bool {
	return func(name string) bool {
		tool, ok := reg.Tool(name)
		return ok && tool.Planned()
	}
}

// What is outside of what trajgen is for: its toolsets are known, and resolve to nothing.
func TestOutside(t *testing.T) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	outside := map[string]string{
		"x_search": "x_search", "computer_use": "computer_use", "kanban": kanbanNine, "discord": "discord", "discord_admin": "discord_admin",
		"yuanbao": yuanbaoFive, "feishu_doc": "feishu_doc_read", "feishu_drive": strings.TrimPrefix(feishuFive, "feishu_doc_read "),
		"spotify": spotifySeven,
	}
	for _, info := range reg.Toolsets() {
		names, named := outside[info.Name]
		if named != info.Outside && info.Name != "hermes-yuanbao" && (named || len(info.Direct) > 0 && !slices.ContainsFunc(info.Direct, byName(reg))) {
			t.Errorf("%s: outside is %v", info.Name, info.Outside)
		}
		for tool := range strings.FieldsSeq(names) {
			if !byName(reg)(tool) || len(info.Resolved) > 0 {
				t.Errorf("%s has %s, and resolves to %v", info.Name, tool, info.Resolved)
			}
		}
	}
	if names, err := reg.Resolve([]string{"terminal"}, nil); err != nil || !slices.Equal(names, []string{"process", "terminal"}) {
		t.Errorf("terminal is %v, %v", names, err)
	}
	set, err := reg.Select(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(webTwo + " mixture_of_agents send_message " + homeFour) {
		if !set.Has(name) {
			t.Errorf("%s is not there", name)
		}
	}
}

func merged(all ...map[string]string) map[string]string {
	one := map[string]string{}
	for _, each := range all {
		maps.Copy(one, each)
	}
	return one
}

// Every distribution draws toolsets that exist.
func TestDistributionsAreKnown(t *testing.T) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	known := func(name string) error {
		_, err := reg.Resolve([]string{name}, nil)
		return err
	}
	names := distributions.Names()
	if len(names) != 17 {
		t.Errorf("%d distributions, want 17", len(names))
	}
	for _, name := range names {
		d, err := distributions.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Validate(known); err != nil {
			t.Error(err)
		}
	}
}

// Every tool that a toolset names is there.
func TestEveryNamedToolExists(t *testing.T) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	names, err := reg.Resolve(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, ok := reg.Tool(name); !ok {
			t.Errorf("no entry for %s", name)
		}
	}
	set, err := reg.Select(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range reg.Tools() {
		if !tool.Planned() {
			continue
		}
		if reason := set.Missing()[tool.Name]; reason != "outside of what trajgen is for" {
			t.Errorf("%s is known by its name, and its reason is %q", tool.Name, reason)
		}
		if tool.Description == "" || !strings.HasSuffix(tool.Description, ".") {
			t.Errorf("%s: description %q", tool.Name, tool.Description)
		}
	}
	if len(set.Names()) != len(names) {
		t.Errorf("%d tools are shown, of %d", len(set.Names()), len(names))
	}
}
