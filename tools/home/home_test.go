package home_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"trajgen/tools/home"
	"trajgen/tools/web/source"
)

const token = "a-long-lived-token"

// assistant is a Home Assistant with the documented REST and WebSocket shapes. posts are the calls that it got.
func assistant(t *testing.T, posts *[]string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/states", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"entity_id":"light.a","state":"on","attributes":{"friendly_name":"A"},"last_changed":"2026-01-01T00:00:00+00:00"},{"entity_id":"lock.b","state":"locked","attributes":{}}]`)
	})
	mux.HandleFunc("GET /api/states/light.a", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"entity_id":"light.a","state":"on","attributes":{"brightness":5},"last_changed":"2026-01-01T00:00:00+00:00"}`)
	})
	mux.HandleFunc("GET /api/services", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"domain":"light","services":{"turn_on":{"name":"Turn on","description":"Turns on.","fields":{"brightness":{"description":"How bright.","selector":{}}}}}}]`)
	})
	mux.HandleFunc("POST /api/services/{domain}/{service}", func(w http.ResponseWriter, r *http.Request) {
		var data map[string]any
		_ = json.NewDecoder(r.Body).Decode(&data)
		*posts = append(*posts, fmt.Sprint(r.PathValue("domain"), ".", r.PathValue("service"), data, r.URL.RawQuery))
		switch asked := r.URL.Query().Has("return_response"); {
		case r.PathValue("domain") == "todo" && !asked:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"message":"Service call requires responses but caller did not ask for responses. Add ?return_response to query parameters."}`)
		case asked:
			fmt.Fprint(w, `{"changed_states":[],"service_response":{"items":["milk"]}}`)
		case r.PathValue("service") == "explode":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"message":"Service light.explode not found."}`)
		default:
			fmt.Fprint(w, `[{"entity_id":"light.a","state":"off","attributes":{}}]`)
		}
	})
	mux.HandleFunc("GET /api/websocket", func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		answer(r, conn)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/websocket" && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "401: Unauthorized "+r.Header.Get("Authorization"))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func answer(r *http.Request, conn *websocket.Conn) {
	ctx := r.Context()
	var said map[string]any
	_ = wsjson.Write(ctx, conn, map[string]any{"type": "auth_required", "ha_version": "2026.11.0"})
	_ = wsjson.Read(ctx, conn, &said)
	if said["type"] != "auth" || said["access_token"] != token {
		_ = wsjson.Write(ctx, conn, map[string]any{"type": "auth_invalid", "message": "Invalid access token or password"})
		return
	}
	_ = wsjson.Write(ctx, conn, map[string]any{"type": "auth_ok"})
	for {
		var asked struct {
			ID   int
			Type string
		}
		if wsjson.Read(ctx, conn, &asked) != nil {
			return
		}
		result := map[string]string{
			"config/area_registry/list":   `[{"area_id":"cellar","name":"Cellar"},{"area_id":"loft","name":"The Loft"}]`,
			"config/device_registry/list": `[{"id":"d1","area_id":"loft"},{"id":"d2","area_id":null}]`,
			"config/entity_registry/list": `[{"entity_id":"light.a","area_id":"cellar","device_id":"d1"},{"entity_id":"lock.b","area_id":null,"device_id":"d1"},{"entity_id":"sensor.c","area_id":null,"device_id":"d2"}]`,
		}[asked.Type]
		_ = wsjson.Write(ctx, conn, map[string]any{"type": "event", "id": 99})
		_ = wsjson.Write(ctx, conn, map[string]any{"id": asked.ID, "type": "result", "success": true, "result": json.RawMessage(result)})
	}
}

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

func live(t *testing.T, url string) *home.Home {
	t.Helper()
	h, err := home.Open(home.Config{
		Settings: home.Settings{URL: url, AllowPrivate: []string{"127.0.0.1"}}, Now: time.Now, Getenv: func(string) string { return token },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestAssistant(t *testing.T) {
	var posts []string
	record := notes{}
	h := live(t, assistant(t, &posts))
	v, ctx := h.View(nil, record.ask), t.Context()
	states, err := v.States(ctx)
	if err != nil || len(states) != 2 || states[0].ID != "light.a" || states[0].Changed == "" {
		t.Errorf("states %+v, %v", states, err)
	}
	if s, err := v.State(ctx, "light.a"); err != nil || s.Attributes["brightness"] != 5.0 {
		t.Errorf("state %+v, %v", s, err)
	}
	services, err := v.Services(ctx)
	if err != nil || len(services) != 1 || services[0].Services["turn_on"].Fields["brightness"].Description != "How bright." {
		t.Errorf("services %+v, %v", services, err)
	}
	areas, err := v.Areas(ctx)
	if err != nil || len(areas) != 2 || areas["light.a"] != "Cellar" || areas["lock.b"] != "The Loft" {
		t.Errorf("areas %v, %v", areas, err)
	}
	did, err := v.Call(ctx, "c1", "light", "turn_off", map[string]any{"entity_id": "light.a"})
	if err != nil || len(did.States) != 1 || did.States[0].State != "off" {
		t.Errorf("call %+v, %v", did, err)
	}
	if did, err := v.Call(ctx, "c2", "todo", "get_items", nil); err != nil || string(did.Response) != `{"items":["milk"]}` {
		t.Errorf("call %+v, %v", did, err)
	}
	failed := func(err error) source.Error {
		e, _ := errors.AsType[*source.Error](err)
		if e == nil {
			t.Fatalf("error %v", err)
		}
		return *e
	}
	_, err = v.Call(ctx, "c3", "light", "explode", nil)
	if e := failed(err); e.Blame != source.Agent || !strings.Contains(e.Message, "Service light.explode not found.") {
		t.Errorf("%+v", e)
	}
	_, err = v.State(ctx, "light.none")
	if e := failed(err); e.Class != home.NotFound || e.Blame != source.Agent {
		t.Errorf("%+v", e)
	}
	if _, err := v.HomeState(); err == nil {
		t.Error("a real home is judged")
	}

	// Another runner goes on from the record: nothing is asked or done again.
	before := len(posts)
	again := h.View(nil, record.ask)
	did, err = again.Call(ctx, "c1", "light", "turn_off", map[string]any{"entity_id": "light.a"})
	if err != nil || len(did.States) != 1 || len(posts) != before {
		t.Errorf("again: %+v, %v, %v", did, err, posts[before:])
	}
	if _, err = again.Call(ctx, "c3", "light", "explode", nil); failed(err).Class != "bad_call" || len(posts) != before {
		t.Errorf("again: %v", err)
	}
	// It had begun a call, and died.
	for question := range record {
		if strings.HasPrefix(question, "homedo c1") {
			delete(record, question)
		}
	}
	if _, err = again.Call(ctx, "c1", "light", "turn_off", nil); failed(err).Class != "unknown_end" || len(posts) != before {
		t.Errorf("a call that was begun: %v, %v", err, posts[before:])
	}
}

func TestOpenRefuses(t *testing.T) {
	var posts []string
	url := assistant(t, &posts)
	for want, s := range map[string]home.Settings{
		"allow_private":                      {URL: url},
		"the key is missing: set HASS_TOKEN": {URL: "https://home.example"},
		"set MY_TOKEN":                       {URL: "https://home.example", TokenEnv: "MY_TOKEN"},
	} {
		_, err := home.Open(home.Config{Settings: s, Now: time.Now, Getenv: func(string) string { return "" }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	h, err := home.Open(home.Config{
		Settings: home.Settings{URL: url, AllowPrivate: []string{"127.0.0.1"}}, Now: time.Now, Getenv: func(string) string { return "the-wrong-token" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, ask := range []func(v *home.View) error{
		func(v *home.View) error { _, err := v.States(t.Context()); return err },
		func(v *home.View) error { _, err := v.Areas(t.Context()); return err },
	} {
		e, ok := errors.AsType[*source.Error](ask(h.View(nil, notes{}.ask)))
		if !ok || e.Blame != source.Operator || strings.Contains(e.Message, "wrong-token") || !strings.Contains(e.Message, "HASS_TOKEN") {
			t.Errorf("%+v", e)
		}
	}
}

func TestSettings(t *testing.T) {
	for want, s := range map[string]home.Settings{
		"":                {},
		"unknown mode":    {Mode: "real"},
		"needs a url":     {Mode: home.Live},
		"for a real home": {Mode: home.Simulated, URL: "http://x", TokenEnv: "X"},
	} {
		if err := s.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if (home.Settings{Mode: home.Simulated, URL: "http://x"}).Live() || !(home.Settings{URL: "http://x"}).Live() {
		t.Error("live")
	}
}
