package messages_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/tools/messages"
	"trajgen/tools/messages/outbox"
	"trajgen/tools/web/source"
)

const token = "1234:the-secret-of-a-bot"

// notes is the record of an attempt.
type notes map[string][]byte

func (n notes) ask(role, question string, answer any, ask func() error) error {
	if kept, ok := n[role+question]; ok {
		return json.Unmarshal(kept, answer)
	}
	err := ask()
	if err == nil {
		n[role+question], err = json.Marshal(answer)
	}
	return err
}

// services has the documented shapes of all services that speak HTTP. A line of seen is a request.
type services struct {
	t *testing.T

	mu   sync.Mutex
	seen []string
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line := r.Method + " " + r.URL.RequestURI()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			s.t.Error(err)
			return
		}
		for _, name := range []string{"chat_id", "text", "message_thread_id", "message_id", "reaction", "payload_json"} {
			if value := r.FormValue(name); value != "" {
				line += fmt.Sprintf(" %s=%s", name, value)
			}
		}
		for name, files := range r.MultipartForm.File {
			f, _ := files[0].Open()
			data, _ := io.ReadAll(f)
			line += fmt.Sprintf(" %s=%s:%s", name, files[0].Filename, data)
		}
	} else {
		body, _ := io.ReadAll(r.Body)
		line += " " + string(body)
	}
	auth := r.Header.Get("Authorization")
	s.mu.Lock()
	s.seen = append(s.seen, strings.ReplaceAll(strings.TrimSpace(line)+" "+auth, token, "TOKEN"))
	s.mu.Unlock()
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/bot") && r.FormValue("chat_id") == "gone":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found for %s"}`, token)
	case strings.HasSuffix(path, "/setMessageReaction"):
		fmt.Fprint(w, `{"ok":true,"result":true}`)
	case strings.HasPrefix(path, "/bot"):
		fmt.Fprint(w, `{"ok":true,"result":{"message_id":77,"chat":{"id":1}}}`)
	case strings.HasSuffix(path, "/@me"):
		w.WriteHeader(http.StatusNoContent)
	case strings.HasPrefix(path, "/channels/"):
		fmt.Fprint(w, `{"id":"900","content":"x"}`)
	case path == "/files.getUploadURLExternal":
		fmt.Fprintf(w, `{"ok":true,"upload_url":"http://%s/upload/1","file_id":"F1"}`, r.Host)
	case path == "/chat.postMessage" && strings.Contains(line, "archived"):
		fmt.Fprint(w, `{"ok":false,"error":"is_archived"}`)
	default:
		fmt.Fprint(w, `{"ok":true,"ts":"17.5"}`)
	}
}

func TestServices(t *testing.T) {
	s := &services{t: t}
	server := httptest.NewServer(s)
	defer server.Close()
	smtp := serveMail(t)
	m, err := messages.Open(messages.Config{Now: time.Now, Getenv: func(string) string { return token }, Settings: messages.Settings{
		Telegram: messages.Service{Channels: []string{"-100", "gone"}, BaseURL: server.URL},
		Discord:  messages.Service{Channels: []string{"55"}, BaseURL: server.URL},
		Slack:    messages.Service{Channels: []string{"C1", "archived"}, BaseURL: server.URL},
		Email:    messages.Email{Channels: []string{"ada@home.example"}, Server: smtp.address, From: "bot@home.example", PasswordEnv: "X", TLS: "none"},
		Webhook:  messages.Webhook{Channels: map[string]string{"alerts": server.URL + "/hook"}, TokenEnv: "X"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	record := notes{}
	v := m.View("ep/1", []string{"telegram:of-the-task"}, record.ask)
	if got := strings.Join(v.Channels(), " "); got != "telegram:-100 telegram:gone discord:55 slack:C1 slack:archived email:ada@home.example webhook:alerts" || v.Mode() != "sent" {
		t.Errorf("%s: %s", v.Mode(), got)
	}
	file := []outbox.File{{Name: "a.txt", Data: []byte("DATA")}}
	for i, tt := range []struct {
		message outbox.Message
		id      string
		seen    []string // requests, in part
		failed  string
	}{
		{outbox.Message{Channel: "telegram:-100", Text: "Hi"}, "77", []string{"POST /botTOKEN/sendMessage chat_id=-100 text=Hi"}, ""},
		{outbox.Message{Channel: "telegram:-100", Thread: "4", Text: "Hi", Files: file}, "77", []string{"sendMessage chat_id=-100 text=Hi message_thread_id=4", "sendDocument chat_id=-100 message_thread_id=4 document=a.txt:DATA"}, ""},
		{outbox.Message{Channel: "telegram:gone", Text: "Hi"}, "", []string{"sendMessage"}, "chat not found for [secret]"},
		{outbox.Message{Channel: "discord:55", Text: "Hi"}, "900", []string{`POST /channels/55/messages payload_json={"content":"Hi","enforce_nonce":true,"nonce":"`}, ""},
		{outbox.Message{Channel: "discord:55", Thread: "56", Text: "Hi", Files: file}, "900", []string{"POST /channels/56/messages"}, ""},
		{outbox.Message{Channel: "slack:C1", Text: "Hi", Thread: "9.1"}, "17.5", []string{`POST /chat.postMessage {"channel":"C1","text":"Hi","thread_ts":"9.1"} Bearer TOKEN`}, ""},
		{outbox.Message{Channel: "slack:C1", Text: "Hi", Files: file}, "F1", []string{"GET /files.getUploadURLExternal?filename=a.txt&length=4 Bearer TOKEN", "POST /upload/1 DATA ", `POST /files.completeUploadExternal {"channel_id":"C1","files":[{"id":"F1","title":"a.txt"}],"initial_comment":"Hi"}`}, ""},
		{outbox.Message{Channel: "slack:archived", Text: "Hi"}, "", []string{"chat.postMessage"}, `slack says "is_archived"`},
		{outbox.Message{Channel: "webhook:alerts", Text: "Hi", Files: file}, "*", []string{`"channel":"alerts","files":[{"name":"a.txt","base64":"REFUQQ=="}]`}, ""},
		{outbox.Message{Channel: "email:ada@home.example", Text: "Hi there\nAnd more.", Files: file}, "*", nil, ""},
	} {
		s.seen = nil
		key := fmt.Sprint("call_", i)
		id, err := v.Send(t.Context(), key, tt.message)
		if id != tt.id && tt.id != "*" || (err == nil) != (tt.failed == "") || err != nil && !strings.Contains(err.Error(), tt.failed) {
			t.Errorf("%+v: %q, %v", tt.message, id, err)
		}
		if len(s.seen) != len(tt.seen) {
			t.Fatalf("%+v: requests %q", tt.message, s.seen)
		}
		for i, want := range tt.seen {
			if !strings.Contains(s.seen[i], want) {
				t.Errorf("request %q, want %q", s.seen[i], want)
			}
		}
		if i == 6 && strings.Contains(s.seen[1], "TOKEN") {
			t.Errorf("the key went with the file: %q", s.seen[1])
		}
		s.seen = nil
		// Another runner goes on from the record: nothing is sent again, whether it went well or not.
		again, failed := m.View("ep/1", nil, record.ask).Send(t.Context(), key, tt.message)
		if again != id || (failed == nil) != (err == nil) || len(s.seen) > 0 {
			t.Errorf("again: %q, %v, requests %q", again, failed, s.seen)
		}
	}
	for _, want := range []string{"MAIL FROM:<bot@home.example>", "RCPT TO:<ada@home.example>", "Subject: Hi there", "And more.", `filename="a.txt"`, base64.StdEncoding.EncodeToString([]byte("DATA"))} {
		if !strings.Contains(smtp.said(), want) {
			t.Errorf("mail without %q:\n%s", want, smtp.said())
		}
	}
	if strings.Count(smtp.said(), "MAIL FROM") != 1 {
		t.Errorf("mail was sent again:\n%s", smtp.said())
	}
	for i, tt := range []struct {
		r       outbox.Reaction
		add     bool
		request string
		failed  string
	}{
		{outbox.Reaction{Channel: "telegram:-100", Message: "7", Emoji: "👍"}, true, `setMessageReaction chat_id=-100 message_id=7 reaction=[{"emoji":"👍","type":"emoji"}]`, ""},
		{outbox.Reaction{Channel: "telegram:-100", Message: "7", Emoji: "👍"}, false, "reaction=[]", ""},
		{outbox.Reaction{Channel: "discord:55", Message: "7", Emoji: "👍"}, true, "PUT /channels/55/messages/7/reactions/%F0%9F%91%8D/@me", ""},
		{outbox.Reaction{Channel: "discord:55", Message: "7", Emoji: "👍"}, false, "DELETE /channels/55/messages/7/reactions/", ""},
		{outbox.Reaction{Channel: "slack:C1", Message: "17.5", Emoji: ":tada:"}, true, `POST /reactions.add {"channel":"C1","name":"tada","timestamp":"17.5"}`, ""},
		{outbox.Reaction{Channel: "slack:C1", Message: "17.5", Emoji: "tada"}, false, "POST /reactions.remove", ""},
		{outbox.Reaction{Channel: "slack:C1", Message: "17.5", Emoji: "👍"}, true, "", "name of an emoji"},
		{outbox.Reaction{Channel: "email:ada@home.example", Message: "1", Emoji: "👍"}, true, "", "no reactions"},
		{outbox.Reaction{Channel: "webhook:alerts", Message: "1", Emoji: "👍"}, true, "", "no reactions"},
	} {
		s.seen = nil
		err := v.React(t.Context(), fmt.Sprint("react_", i), tt.r, tt.add)
		if (err == nil) != (tt.failed == "") || err != nil && !strings.Contains(err.Error(), tt.failed) {
			t.Errorf("%+v: %v", tt.r, err)
		}
		if got := strings.Join(s.seen, "\n"); !strings.Contains(got, tt.request) || (tt.request == "") != (got == "") {
			t.Errorf("%+v: %q, want %q", tt.r, got, tt.request)
		}
	}
	for question, kept := range record {
		if strings.Contains(string(kept)+question, token) {
			t.Errorf("the record has the key: %s", kept)
		}
	}
}

// TestBegun holds that what a runner had begun when it died is not sent again.
func TestBegun(t *testing.T) {
	s := &services{t: t}
	server := httptest.NewServer(s)
	defer server.Close()
	m, err := messages.Open(messages.Config{Now: time.Now, Getenv: func(string) string { return token }, Settings: messages.Settings{
		Slack: messages.Service{Channels: []string{"C1"}, BaseURL: server.URL},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	died := errors.New("the runner died")
	record := notes{}
	dying := func(role, question string, answer any, ask func() error) error {
		if strings.HasPrefix(question, "begin ") {
			return record.ask(role, question, answer, ask)
		}
		return errors.Join(ask(), died)
	}
	if _, err := m.View("ep/1", nil, dying).Send(t.Context(), "c", outbox.Message{Channel: "slack:C1", Text: "Hi"}); !errors.Is(err, died) || len(s.seen) != 1 {
		t.Fatalf("%v, %q", err, s.seen)
	}
	_, err = m.View("ep/1", nil, record.ask).Send(t.Context(), "c", outbox.Message{Channel: "slack:C1", Text: "Hi"})
	if e, ok := errors.AsType[*source.Error](err); !ok || e.Class != "unknown_end" || len(s.seen) != 1 {
		t.Errorf("%v, %q", err, s.seen)
	}
}

// TestOutbox is about messages that stay in the episode.
func TestOutbox(t *testing.T) {
	m, err := messages.Open(messages.Config{Now: time.Now, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	v := m.View("ep/1", []string{"signal:+49:1", "signal:+50"}, nil) // and asks nothing
	for target, want := range map[string]string{"signal": "signal:+49:1 ", "signal:+49:1:thread": "signal:+49:1 thread", "signal:+50": "signal:+50 ", "signal:+51": "", "sms": "", "": ""} {
		channel, thread, err := v.Find(target)
		if got := strings.TrimPrefix(channel+" "+thread, " "); got != want || (err == nil) != (want != "") {
			t.Errorf("Find(%q) = %q, %v", target, got, err)
		}
	}
	if id, err := v.Send(t.Context(), "a", outbox.Message{Channel: "signal:+50", Text: "Hi"}); id != "m1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	r := outbox.Reaction{Channel: "signal:+50", Message: "m1", Emoji: "👍"}
	if err := v.React(t.Context(), "b", r, false); err == nil {
		t.Error("a reaction was taken away that was not there")
	}
	if err := errors.Join(v.React(t.Context(), "c", r, true), v.React(t.Context(), "d", r, true)); err != nil {
		t.Error(err)
	}
	text, err := v.Sent()
	want := `{"channels":["signal:+49:1","signal:+50"],"reactions":[{"channel":"signal:+50","message_id":"m1","emoji":"👍"}],` +
		`"sent":[{"id":"m1","channel":"signal:+50","thread":"","text":"Hi","files":null}]}`
	if string(text) != want || err != nil {
		t.Errorf("%s, %v", text, err)
	}
}

func TestSettings(t *testing.T) {
	for want, s := range map[string]messages.Settings{
		"":                                 {Telegram: messages.Service{Channels: []string{"1"}}},
		"slack names no channels":          {Slack: messages.Service{TokenEnv: "X"}},
		`server is "mail"; want HOST:PORT`: {Email: messages.Email{Channels: []string{"a@b.example"}, From: "c@b.example", Server: "mail"}},
		`"someone" is not an address`:      {Email: messages.Email{Channels: []string{"someone"}, From: "c@b.example", Server: "mail:25"}},
		"unknown tls":                      {Email: messages.Email{TLS: "maybe"}},
		"webhook: channel x needs a URL":   {Webhook: messages.Webhook{Channels: map[string]string{"x": "y"}}},
	} {
		if err := s.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	_, err := messages.Open(messages.Config{Now: time.Now, Getenv: func(string) string { return "" }, Settings: messages.Settings{
		Telegram: messages.Service{Channels: []string{"1"}}, Discord: messages.Service{Channels: []string{"1"}, TokenEnv: "MINE"},
	}})
	if err == nil || !strings.Contains(err.Error(), "set TELEGRAM_BOT_TOKEN") || !strings.Contains(err.Error(), "set MINE") {
		t.Errorf("%v", err)
	}
}
