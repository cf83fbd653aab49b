package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"trajgen/outputs/export"
	"trajgen/outputs/internal/golden"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// chatRow has the keys of all formats of conversations.
type chatRow struct {
	ID                   string
	EpisodeID            string         `json:"episode_id"`
	ChosenID             string         `json:"chosen_id" parquet:"chosen_id"`
	RejectedID           string         `json:"rejected_id" parquet:"rejected_id"`
	Messages             []chatMessage  `json:"messages"`
	Prompt               []chatMessage  `json:"prompt"`
	Completion           []chatMessage  `json:"completion"`
	Tools                any            `json:"tools"`
	Metadata             map[string]any `json:"metadata"`
	ChosenReward         float64        `json:"chosen_reward"`
	RejectedReward       float64        `json:"rejected_reward"`
	InputIDs             []int32        `json:"input_ids"`
	Labels               []int32        `json:"labels"`
	ToolStats            map[string]any `json:"tool_stats"`
	Completed            bool           `json:"completed"`
	ToolErrors           map[string]int `json:"tool_error_counts"`
	Conversations        []export.ShareGPTTurn
	APICalls, BatchIndex int
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	Reasoning  string     `json:"reasoning_content"`
	ToolCalls  []chatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	Weight     *int       `json:"weight"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments any    `json:"arguments"`
	} `json:"function"`
}

func readRows(t *testing.T, path string) (rows []chatRow) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var row chatRow
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// idsOf read the ids that rows of JSON or Parquet have.
func idsOf(of func(chatRow) []string) func(*testing.T, string) []string {
	return func(t *testing.T, path string) (ids []string) {
		for _, row := range readRows(t, path) {
			ids = append(ids, of(row)...)
		}
		return ids
	}
}

func rowID(row chatRow) []string { return []string{row.ID} }

// timestampIDs know an episode of sinktest by when it began.
func timestampIDs(row chatRow) []string {
	at, err := time.Parse("2006-01-02T15:04:05.999999-07:00", row.Metadata["timestamp"].(string))
	if err != nil {
		return []string{err.Error()}
	}
	i := int(at.Sub(sinktest.Episode(0, 0).Started) / time.Second)
	return []string{sinktest.Episode(i/2, i%2).ID}
}

func hasSequence(ep *episode.Episode) bool {
	ids, _ := ep.Sequence()
	return len(ids) > 0
}

// paired tells the episodes of sinktest whose task has one success and one failure.
func paired(ep *episode.Episode) bool { return ep.Row%4 == 0 }

func TestChatSettingsKeepTheContract(t *testing.T) {
	pairs := func(t *testing.T, path string) (ids []string) {
		rows, err := parquet.ReadFile[struct {
			Chosen   string `parquet:"chosen_id"`
			Rejected string `parquet:"rejected_id"`
		}](path)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			ids = append(ids, row.Chosen, row.Rejected)
		}
		return ids
	}
	inParquet := map[string]string{"file": "parquet", "json": "string"}
	for _, format := range []sinktest.Format{
		{Name: "trl", Path: "a/trl.parquet", Set: inParquet, Carries: hasMessages, IDs: idColumn("id")},
		{Name: "trl-prompt-completion", Path: "a/pc.parquet", Set: inParquet, Carries: hasMessages, IDs: idColumn("id")},
		{Name: "trl-preference", Path: "a/pairs.parquet", Set: inParquet, Carries: paired, IDs: pairs},
		{Name: "tokens", Path: "a/tokens.jsonl", Set: map[string]string{"file": "jsonl"}, Carries: hasSequence, IDs: idsOf(rowID)},
		{Name: "sharegpt", Path: "a/own.jsonl", Set: map[string]string{"system": "own"}, Carries: hasMessages, IDs: idsOf(timestampIDs)},
	} {
		t.Run(format.Name, func(t *testing.T) { sinktest.Run(t, format) })
	}
}

// plainEpisode has nothing that is optional.
func plainEpisode() *episode.Episode {
	key := episode.Key{Seed: 1, Task: "plain"}
	return &episode.Episode{
		Schema: episode.SchemaVersion, ID: key.ID(), Key: key, Row: 9, Attempt: 1, Outcome: episode.Success, Stop: episode.StopAnswered,
		Messages: []episode.Message{{Role: "user", Content: "2+2?"}, {Role: "assistant", Content: "4"}},
		Turns:    []episode.Turn{{Message: 1, FinishReason: "stop"}}, Reward: new(1.0),
	}
}

// chatFormats are the formats of conversations with settings that show all that they have.
var chatFormats = []struct {
	name, schema string
	set          map[string]string
}{
	{"openai", "openai", map[string]string{"reasoning": "think"}},
	{"sharegpt", "sharegpt", nil},
	{"tokens", "tokens", map[string]string{"file": "jsonl"}},
	{"trl", "trl", map[string]string{"reasoning": "field"}},
	{"trl-preference", "trl-preference", nil},
	{"trl-prompt-completion", "trl-prompt-completion", nil},
}

// TestChatGolden shows a row with everything that an episode can have, and one with nothing of it.
func TestChatGolden(t *testing.T) {
	for _, format := range chatFormats {
		t.Run(format.name, func(t *testing.T) {
			episodes := []*episode.Episode{sinktest.Episode(4, 0), sinktest.Episode(4, 1), plainEpisode()}
			sendObjects(episodes)
			path := exported(t, format.name, episodes, export.Options{Set: format.set})
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			checkSchema(t, format.schema, data)
			golden.Check(t, data)
		})
	}
}

// TestChatSchema holds every row of every format to its schema.
func TestChatSchema(t *testing.T) {
	for _, format := range append(chatFormats[:len(chatFormats):len(chatFormats)], []struct {
		name, schema string
		set          map[string]string
	}{{"trl", "trl-value", map[string]string{"json": "value"}}, {"trl", "trl-string", asTexts}}...) {
		t.Run(format.schema, func(t *testing.T) {
			episodes := sinktest.Episodes(40)
			if format.schema != "trl-string" {
				sendObjects(episodes)
			}
			data, err := os.ReadFile(exported(t, format.name, episodes, export.Options{Set: format.set}))
			if err != nil {
				t.Fatal(err)
			}
			checkSchema(t, format.schema, data)
		})
	}
}

// sendObjects has something sent back in the place of arguments that are not objects.
func sendObjects(episodes []*episode.Episode) {
	for _, ep := range episodes {
		for i := range ep.Messages {
			for j := range ep.Messages[i].Calls {
				if call := &ep.Messages[i].Calls[j]; !json.Valid([]byte(call.Arguments)) {
					call.Sent = `{"arguments":"no JSON"}`
				}
			}
		}
	}
}

func checkSchema(t *testing.T, name string, lines []byte) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", "schemas", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range bytes.Lines(lines) {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		rows++
		if err := schema.Validate(value); err != nil {
			t.Errorf("row %d: %v", rows, err)
		}
	}
	if rows == 0 {
		t.Error("no rows")
	}
}

// TestChatRoundTrip reads messages back into what the episode has.
func TestChatRoundTrip(t *testing.T) {
	episodes := append(sinktest.Episodes(16), plainEpisode())
	byID := map[string]*episode.Episode{}
	for _, ep := range episodes {
		byID[ep.ID] = ep
	}
	tests := []struct {
		format    string
		set       map[string]string
		reasoning bool
	}{
		{"openai", map[string]string{"id": "episode_id"}, false},
		{"trl", map[string]string{"reasoning": "field", "json": "string"}, true},
		{"trl-prompt-completion", map[string]string{"reasoning": "field", "json": "string"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.format, func(t *testing.T) {
			rows := readRows(t, exported(t, tt.format, episodes, export.Options{Set: tt.set}))
			for _, row := range rows {
				ep := byID[row.ID+row.EpisodeID]
				got := append(append(row.Messages, row.Prompt...), row.Completion...)
				var messages []episode.Message
				for _, m := range got {
					messages = append(messages, episodeMessage(m))
				}
				want := ep.Messages
				if tt.format == "openai" && ep.Key.Task != "plain" {
					want = want[:3] // nothing behind the model's last message
				}
				if diff := cmp.Diff(wantChat(want, tt.reasoning), messages); diff != "" {
					t.Errorf("messages of %s (-want +got):\n%s", ep.ID, diff)
				}
				if tt.format != "openai" {
					var tools []json.RawMessage
					if err := json.Unmarshal([]byte(row.Tools.(string)), &tools); err != nil || fmt.Sprintf("%s", tools) != fmt.Sprintf("%s", ep.Tools) {
						t.Errorf("tools of %s: %s, %v", ep.ID, row.Tools, err)
					}
				}
			}
			if len(rows) != 15 {
				t.Errorf("%d rows, want 15", len(rows))
			}
		})
	}
}

func episodeMessage(m chatMessage) episode.Message {
	to := episode.Message{Role: m.Role, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
	if m.Content != nil {
		to.Content = *m.Content
	}
	for _, call := range m.ToolCalls {
		to.Calls = append(to.Calls, episode.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments.(string)})
	}
	return to
}

// wantChat are messages without what chat formats have no place for.
func wantChat(messages []episode.Message, reasoning bool) (want []episode.Message) {
	for _, m := range messages {
		calls := m.Calls
		m = episode.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
		if !reasoning {
			m.Reasoning = ""
		}
		for _, call := range calls {
			call.Cut, call.Sent = false, ""
			m.Calls = append(m.Calls, call)
		}
		want = append(want, m)
	}
	return want
}

// chat is an episode of a conversation.
func chat(messages ...episode.Message) *episode.Episode {
	ep := plainEpisode()
	ep.Messages = messages
	ep.Turns = nil
	for i, m := range messages {
		if m.Role == "assistant" && !m.Harness {
			ep.Turns = append(ep.Turns, episode.Turn{Index: len(ep.Turns), Message: i})
		}
	}
	return ep
}

func user(text string) episode.Message { return episode.Message{Role: "user", Content: text} }

func calling(ids ...string) episode.Message {
	m := episode.Message{Role: "assistant"}
	for _, id := range ids {
		m.Calls = append(m.Calls, episode.Call{ID: id, Name: "f", Arguments: "{}"})
	}
	return m
}

func result(id, content string) episode.Message {
	return episode.Message{Role: "tool", ToolCallID: id, Name: "f", Content: content}
}

// TestChatRefusals holds which conversations no format takes, and that they are counted by the reason.
func TestChatRefusals(t *testing.T) {
	answer := episode.Message{Role: "assistant", Content: "done"}
	thought := answer
	thought.Reasoning = "a </think> b"
	bad := calling("a")
	bad.Calls[0].Name = "f g"
	tests := []struct {
		name    string
		give    *episode.Episode
		formats string // that refuse it
		reason  string
	}{
		{"silent", chat(user("hi")), "openai sharegpt trl trl-preference trl-prompt-completion", "no assistant message"},
		{"prefill alone", chat(user("hi"), episode.Message{Role: "assistant", Content: "x", Harness: true}), "openai sharegpt trl trl-preference trl-prompt-completion", "no assistant message"},
		{"result without a call", chat(user("hi"), answer, result("a", "x"), answer), "openai sharegpt trl trl-preference trl-prompt-completion", "a result without its call"},
		{"result twice", chat(user("hi"), calling("a"), result("a", "x"), result("a", "x"), answer), "openai sharegpt trl trl-preference trl-prompt-completion", "a result without its call"},
		{"call without a result", chat(user("hi"), calling("a", "b"), result("a", "x"), answer), "openai sharegpt trl trl-preference trl-prompt-completion", "a call without its result"},
		{"half the results at the end", chat(user("hi"), calling("a", "b"), result("a", "x")), "openai sharegpt trl trl-preference trl-prompt-completion", "a call without its result"},
		{"calls with one id", chat(user("hi"), calling("a", "a"), answer), "openai sharegpt trl trl-preference trl-prompt-completion", "calls of one turn without ids of their own"},
		{"another role", chat(episode.Message{Role: "developer", Content: "x"}, answer), "openai sharegpt trl trl-preference trl-prompt-completion", "a message of a role that the format does not have"},
		{"open calls at the end", chat(user("hi"), calling("a", "b")), "", ""},
		{"bad name", chat(user("hi"), bad, result("a", "x"), answer), "openai", "a tool's name that the format does not allow"},
		{"late system message", chat(user("hi"), episode.Message{Role: "system", Content: "s"}, answer), "sharegpt", "a system message behind the first one"},
		{"tag in reasoning", chat(user("hi"), thought), "sharegpt", "a tag of the envelope in the model's own words"},
		{"no prompt", chat(answer), "trl-preference trl-prompt-completion", "no message before the model's first one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, format := range []string{"openai", "sharegpt", "trl", "trl-preference", "trl-prompt-completion"} {
				better := *tt.give
				better.Key.Sample, better.Reward = 1, new(2.0)
				better.ID = better.Key.ID()
				result := write(t, format, nil, tt.give, &better)
				want := map[string]int{}
				if strings.Contains(" "+tt.formats+" ", " "+format+" ") {
					want[tt.reason] = 2
				}
				if diff := cmp.Diff(want, result.Dropped); diff != "" {
					t.Errorf("%s: dropped (-want +got):\n%s", format, diff)
				}
				if result.Episodes != 2-want[tt.reason] {
					t.Errorf("%s: %d episodes", format, result.Episodes)
				}
			}
		})
	}
}

// write exports episodes and says what came of it.
func write(t *testing.T, format string, set map[string]string, episodes ...*episode.Episode) export.Result {
	t.Helper()
	sink, err := export.Open(format, filepath.Join(t.TempDir(), "out"), export.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	result, err := export.Write(t.Context(), sinktest.Slice(episodes), sink)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestChatSettingsSayWhatIsWrong(t *testing.T) {
	tests := []struct{ format, key, value, want string }{
		{"openai", "weight", "all", `weight is "all" (have model, ok, none)`},
		{"openai", "id", "tools", "a key of the format"},
		{"openai", "parallel_tool_calls", "yes", "have true, false"},
		{"trl", "file", "csv", "have jsonl, parquet"},
		{"trl", "weight", "ok", `no setting "weight" (have children, file, json, reasoning)`},
		{"trl-preference", "margin", "-1", "not below 0"},
		{"trl-preference", "margin", "NaN", "not below 0"},
		{"tokens", "max_length", "0", "a whole number over 0"},
		{"sharegpt", "system", "none", "have tools, own"},
	}
	for _, tt := range tests {
		_, err := export.Open(tt.format, filepath.Join(t.TempDir(), "x"), export.Options{Set: map[string]string{tt.key: tt.value}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s=%s: %v, want %q", tt.format, tt.key, tt.value, err, tt.want)
		}
	}
}

// TestChatParquet holds that another library reads from Parquet what stands in JSONL.
func TestChatParquet(t *testing.T) {
	episodes := sinktest.Episodes(16)
	for _, format := range []string{"trl", "trl-prompt-completion", "trl-preference", "tokens"} {
		read := func(file string) (rows []chatRow) {
			set := map[string]string{"file": file}
			if format != "tokens" {
				set["reasoning"], set["json"] = "field", "string"
			}
			path := exported(t, format, episodes, export.Options{Set: set})
			if file == "jsonl" {
				return readRows(t, path)
			}
			text, err := json.Marshal(arrowFile(t, path))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &rows); err != nil {
				t.Fatal(err)
			}
			return rows
		}
		if diff := cmp.Diff(read("jsonl"), read("parquet"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-jsonl +parquet):\n%s", format, diff)
		}
	}
}

// TestDatasetsOwnWords has a dataset whose prompt begins with an exchange: its assistant message is none of the model's.
func TestDatasetsOwnWords(t *testing.T) {
	ep := chat(user("hi"), episode.Message{Role: "assistant", Content: "an example"}, user("2+2?"), episode.Message{Role: "assistant", Content: "4"})
	ep.Turns = []episode.Turn{{Message: 3}}
	row := readRows(t, exported(t, "openai", []*episode.Episode{ep}, export.Options{}))[0]
	if *row.Messages[1].Weight != 0 || *row.Messages[3].Weight != 1 {
		t.Errorf("weights %d and %d, want 0 and 1", *row.Messages[1].Weight, *row.Messages[3].Weight)
	}
	row = readRows(t, exported(t, "trl-prompt-completion", []*episode.Episode{ep}, export.Options{}))[0]
	if len(row.Prompt) != 3 || len(row.Completion) != 1 || *row.Completion[0].Content != "4" {
		t.Errorf("prompt %d, completion %d messages; want 3 and 1", len(row.Prompt), len(row.Completion))
	}
	worse := *ep
	worse.Key.Sample, worse.Reward = 1, new(0.0)
	worse.ID = worse.Key.ID()
	row = readRows(t, exported(t, "trl-preference", []*episode.Episode{ep, &worse}, export.Options{}))[0]
	if len(row.Prompt) != 3 {
		t.Errorf("the prompt of a pair has %d messages, want 3", len(row.Prompt))
	}
	talk := arrowFile(t, exported(t, "verl-sft", []*episode.Episode{ep}, export.Options{}))[0]["messages"].([]any)
	if a, b := talk[1].(map[string]any)["trainable"], talk[3].(map[string]any)["trainable"]; a != false || b != true {
		t.Errorf("trainable %v and %v, want false and true", a, b)
	}
	for _, format := range []string{"trl", "sharegpt", "verl-sft"} {
		if result := write(t, format, nil, ep); len(result.Notes) == 0 || !strings.Contains(strings.Join(result.Notes, "\n"), "assistant messages of the dataset") {
			t.Errorf("%s: notes %q", format, result.Notes)
		}
	}
	ep.Turns = nil
	if result := write(t, "openai", nil, ep); result.Dropped["no assistant message"] != 1 {
		t.Errorf("of a dataset's words alone: dropped %v", result.Dropped)
	}
}

// TestArgumentsAreObjects is about what a chat template is given: arguments as the model meant them, or as they were sent back
// to it, and nothing of other tools.
func TestArgumentsAreObjects(t *testing.T) {
	call := func(arguments, sent string) *episode.Episode {
		ep := chat(user("hi"), calling("a"), result("a", "x"), episode.Message{Role: "assistant", Content: "done"})
		ep.Messages[1].Calls[0].Arguments, ep.Messages[1].Calls[0].Sent = arguments, sent
		ep.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f"}}`)}
		ep.Key.Task = arguments
		ep.ID = ep.Key.ID()
		return ep
	}
	whole, mended, lost := call(`{"path": "a", "n": [1, null]}`, ""), call(`{"path": unclosed`, `{"path":"unclosed"}`), call(`{"path": gone`, "")
	want := []any{map[string]any{"path": "a", "n": []any{1.0, nil}}, map[string]any{"path": "unclosed"}}
	for _, format := range []string{"trl", "trl-prompt-completion"} {
		var got []any
		for _, row := range readRows(t, exported(t, format, []*episode.Episode{whole, mended, lost}, export.Options{})) {
			got = append(got, append(row.Messages, row.Completion...)[max(0, len(row.Messages)-3)].ToolCalls[0].Function.Arguments)
			if _, text := row.Tools.(string); !text {
				t.Errorf("%s: tools are %T, want a text", format, row.Tools)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", format, diff)
		}
	}
	worse := call(whole.Messages[1].Calls[0].Arguments, "")
	worse.Key.Sample, worse.Reward, worse.Messages[3].Content = 1, new(0.0), "other"
	worse.ID = worse.Key.ID()
	path := exported(t, "trl-preference", []*episode.Episode{whole, worse}, export.Options{})
	var pair struct {
		Chosen []chatMessage `json:"chosen"`
	}
	if err := json.Unmarshal(linesOf(t, path)[0], &pair); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[0], pair.Chosen[0].ToolCalls[0].Function.Arguments); diff != "" {
		t.Errorf("trl-preference: arguments (-want +got):\n%s", diff)
	}
	for format, set := range map[string]map[string]string{"trl": {"file": "parquet"}, "verl-sft": nil} {
		file := openParquet(t, exported(t, format, []*episode.Episode{whole, mended}, export.Options{Set: set}))
		if schema := file.Schema().String(); !strings.Contains(schema, "arguments (JSON)") || format == "verl-sft" && !strings.Contains(schema, "element (JSON)") {
			t.Errorf("%s: arguments or tools are not of the type JSON:\n%s", format, schema)
		}
		result := write(t, format, set, whole, mended, lost)
		dropped := map[string]int{"arguments that are no JSON object, in whose place none was sent back to the model": 1}
		if diff := cmp.Diff(dropped, result.Dropped); diff != "" || !strings.Contains(strings.Join(result.Notes, "\n"), "what was sent back to the model: 1") {
			t.Errorf("%s: notes %q, dropped (-want +got):\n%s", format, result.Notes, diff)
		}
		if result := write(t, format, map[string]string{"json": "string"}, whole, mended, lost); result.Episodes != 3 {
			t.Errorf("%s as texts: %+v", format, result)
		}
	}
}
