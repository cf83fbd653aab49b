package messages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"trajgen/tools/messages/outbox"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// id is a channel without its platform.
func id(channel string) string {
	_, id, _ := strings.Cut(channel, ":")
	return id
}

// form is a request with fields and files.
func form(method, path string, fields map[string]string, field string, files []outbox.File) (provider.Request, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, name := range sortedKeys(fields) {
		if err := w.WriteField(name, fields[name]); err != nil {
			return provider.Request{}, err
		}
	}
	for i, file := range files {
		part, err := w.CreateFormFile(strings.ReplaceAll(field, "#", strconv.Itoa(i)), file.Name)
		if err == nil {
			_, err = part.Write(file.Data)
		}
		if err != nil {
			return provider.Request{}, err
		}
	}
	err := w.Close()
	return provider.Request{
		Method: method, Path: path, Text: body.String(), Header: map[string]string{"Content-Type": w.FormDataContentType()}, Costly: true,
	}, err
}

// telegram is Telegram's bot API, whose key stands in the address.
type telegram struct {
	*provider.Client
	token string
}

func (t *telegram) ask(ctx context.Context, method string, fields map[string]string, files ...outbox.File) (string, error) {
	r, err := form(http.MethodPost, "/bot"+t.token+"/"+method, fields, "document", files)
	if err != nil {
		return "", err
	}
	var said struct {
		OK          bool
		Description string
		Result      json.RawMessage
	}
	if err := t.Ask(ctx, r, &said); err != nil {
		return "", err
	}
	var message struct {
		ID int64 `json:"message_id"`
	}
	_ = json.Unmarshal(said.Result, &message) // true, of a reaction
	return strconv.FormatInt(message.ID, 10), nil
}

func (t *telegram) send(ctx context.Context, m outbox.Message, _ string) (first string, err error) {
	fields := func(more, text string) map[string]string {
		all := map[string]string{"chat_id": id(m.Channel)}
		if text != "" {
			all[more] = text
		}
		if m.Thread != "" {
			all["message_thread_id"] = m.Thread
		}
		return all
	}
	if m.Text != "" {
		if first, err = t.ask(ctx, "sendMessage", fields("text", m.Text)); err != nil {
			return "", err
		}
	}
	for _, file := range m.Files {
		sent, err := t.ask(ctx, "sendDocument", fields("", ""), file)
		if err != nil {
			return "", err
		}
		first = cmp.Or(first, sent)
	}
	return first, nil
}

func (t *telegram) react(ctx context.Context, r outbox.Reaction, add bool) error {
	reaction := "[]"
	if add {
		text, _ := json.Marshal([]map[string]string{{"type": "emoji", "emoji": r.Emoji}}) // of texts
		reaction = string(text)
	}
	_, err := t.ask(ctx, "setMessageReaction", map[string]string{"chat_id": id(r.Channel), "message_id": r.Message, "reaction": reaction})
	return err
}

// discord is Discord's API for bots.
type discord struct{ *provider.Client }

func (d *discord) send(ctx context.Context, m outbox.Message, key string) (string, error) {
	text, _ := json.Marshal(map[string]any{"content": m.Text, "nonce": nonce(key), "enforce_nonce": true}) // of texts
	r, err := form(http.MethodPost, "/channels/"+url.PathEscape(cmp.Or(m.Thread, id(m.Channel)))+"/messages",
		map[string]string{"payload_json": string(text)}, "files[#]", m.Files)
	if err != nil {
		return "", err
	}
	var said struct{ ID string }
	err = d.Ask(ctx, r, &said)
	return said.ID, err
}

func (d *discord) react(ctx context.Context, r outbox.Reaction, add bool) error {
	method := http.MethodDelete
	if add {
		method = http.MethodPut
	}
	path := fmt.Sprintf("/channels/%s/messages/%s/reactions/%s/@me", url.PathEscape(id(r.Channel)), url.PathEscape(r.Message), url.PathEscape(r.Emoji))
	_, err := d.Send(ctx, provider.Request{Method: method, Path: path, Costly: true})
	return err
}

// slack is Slack's Web API. Files go to an address that it gives, without the key.
type slack struct {
	*provider.Client
	files *provider.Client
}

// slackSays knows Slack's errors, which have a good status.
func slackSays(_ int, body []byte) *source.Error {
	var said struct {
		OK    *bool
		Error string
	}
	if json.Unmarshal(body, &said) != nil || said.OK == nil || *said.OK {
		return nil
	}
	blame, class := source.Agent, source.Refused
	switch said.Error {
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "missing_scope":
		blame = source.Operator
	case "ratelimited", "internal_error", "service_unavailable", "fatal_error":
		blame, class = source.Outage, source.Unavailable
	}
	return source.Errorf(blame, class, "slack says %.100q", said.Error)
}

func (s *slack) post(ctx context.Context, method string, body, answer any) error {
	return s.Ask(ctx, provider.Request{Method: http.MethodPost, Path: "/" + method, JSON: body, Costly: true}, answer)
}

func (s *slack) send(ctx context.Context, m outbox.Message, _ string) (string, error) {
	said := struct{ TS string }{}
	if len(m.Files) == 0 {
		body := map[string]string{"channel": id(m.Channel), "text": m.Text}
		if m.Thread != "" {
			body["thread_ts"] = m.Thread
		}
		err := s.post(ctx, "chat.postMessage", body, &said)
		return said.TS, err
	}
	type uploaded struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	var all []uploaded
	for _, file := range m.Files {
		var place struct {
			URL string `json:"upload_url"`
			ID  string `json:"file_id"`
		}
		query := url.Values{"filename": {file.Name}, "length": {strconv.Itoa(len(file.Data))}}
		if err := s.Ask(ctx, provider.Request{Method: http.MethodGet, Path: "/files.getUploadURLExternal", Query: query}, &place); err != nil {
			return "", err
		}
		if _, err := s.files.Send(ctx, provider.Request{Method: http.MethodPost, Path: place.URL, Text: string(file.Data), Costly: true}); err != nil {
			return "", err
		}
		all = append(all, uploaded{place.ID, file.Name})
	}
	body := map[string]any{"files": all, "channel_id": id(m.Channel), "initial_comment": m.Text}
	if m.Thread != "" {
		body["thread_ts"] = m.Thread
	}
	return all[0].ID, s.post(ctx, "files.completeUploadExternal", body, &said)
}

// emojiName is how Slack names an emoji.
var emojiName = regexp.MustCompile(`^[a-z0-9_+'-]+$`)

func (s *slack) react(ctx context.Context, r outbox.Reaction, add bool) error {
	name := strings.Trim(r.Emoji, ":")
	if !emojiName.MatchString(name) {
		return source.Errorf(source.Agent, Unsupported, "slack wants the name of an emoji, such as thumbsup")
	}
	method := "reactions.remove"
	if add {
		method = "reactions.add"
	}
	return s.post(ctx, method, map[string]string{"channel": id(r.Channel), "timestamp": r.Message, "name": name}, &struct{}{})
}

// webhook posts messages as JSON.
type webhook struct {
	*provider.Client
	urls map[string]string
}

func (w *webhook) send(ctx context.Context, m outbox.Message, key string) (string, error) {
	type file struct {
		Name   string `json:"name"`
		Base64 string `json:"base64"`
	}
	files := []file{}
	for _, f := range m.Files {
		files = append(files, file{f.Name, base64.StdEncoding.EncodeToString(f.Data)})
	}
	body := map[string]any{"id": nonce(key), "channel": id(m.Channel), "thread": m.Thread, "text": m.Text, "files": files}
	_, err := w.Send(ctx, provider.Request{Method: http.MethodPost, Path: w.urls[id(m.Channel)], JSON: body, Costly: true})
	return nonce(key), err
}

func (w *webhook) react(context.Context, outbox.Reaction, bool) error {
	return source.Errorf(source.Agent, Unsupported, "a webhook takes no reactions")
}
