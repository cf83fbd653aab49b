package home

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"trajgen/tools/web/source"
)

// registries asks a Home Assistant for the areas of its entities, which it tells over its WebSocket alone.
func (v *View) registries(ctx context.Context) (map[string]string, error) {
	ctx, cancel := patience(ctx)
	defer cancel()
	address := strings.TrimRight(v.settings.URL, "/") + "/api/websocket"
	conn, resp, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: &http.Client{Transport: v.guarded}})
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		return nil, v.unheard(err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxAnswer)
	if err := v.greet(ctx, conn); err != nil {
		return nil, err
	}
	var areas []struct {
		ID   string `json:"area_id"`
		Name string `json:"name"`
	}
	var devices []struct {
		ID   string `json:"id"`
		Area string `json:"area_id"`
	}
	var entities []struct {
		ID     string `json:"entity_id"`
		Area   string `json:"area_id"`
		Device string `json:"device_id"`
	}
	for i, list := range []struct {
		name string
		into any
	}{{"area", &areas}, {"device", &devices}, {"entity", &entities}} {
		if err := v.list(ctx, conn, i+1, "config/"+list.name+"_registry/list", list.into); err != nil {
			return nil, err
		}
	}
	names, places, found := map[string]string{}, map[string]string{}, map[string]string{}
	for _, a := range areas {
		names[a.ID] = a.Name
	}
	for _, d := range devices {
		places[d.ID] = d.Area
	}
	for _, e := range entities {
		if area := cmp.Or(e.Area, places[e.Device]); area != "" {
			found[e.ID] = names[area]
		}
	}
	return found, nil
}

// message is one of the WebSocket's, in either direction.
type message struct {
	ID      int             `json:"id,omitempty"`
	Type    string          `json:"type"`
	Token   string          `json:"access_token,omitempty"`
	Success bool            `json:"success,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// greet says who asks.
func (v *View) greet(ctx context.Context, conn *websocket.Conn) error {
	var said message
	err := wsjson.Read(ctx, conn, &said)
	if err == nil && said.Type == "auth_required" {
		if err = wsjson.Write(ctx, conn, message{Type: "auth", Token: v.token}); err == nil {
			err = wsjson.Read(ctx, conn, &said)
		}
	}
	switch {
	case err != nil:
		return v.unheard(err)
	case said.Type != "auth_ok":
		return v.client.Errorf(source.Operator, source.Refused, "it refuses the key in %s", v.settings.Variable())
	}
	return nil
}

// list asks for a registry. Other messages may come in between.
func (v *View) list(ctx context.Context, conn *websocket.Conn, id int, kind string, into any) error {
	if err := wsjson.Write(ctx, conn, message{ID: id, Type: kind}); err != nil {
		return v.unheard(err)
	}
	for {
		var said message
		if err := wsjson.Read(ctx, conn, &said); err != nil {
			return v.unheard(err)
		}
		if said.ID != id || said.Type != "result" {
			continue
		}
		if err := json.Unmarshal(said.Result, into); err != nil || !said.Success {
			return v.client.Errorf(source.Outage, source.Malformed, "it does not tell its areas (%s)", kind)
		}
		return nil
	}
}

func (v *View) unheard(err error) error {
	return v.client.Errorf(source.Outage, source.Unavailable, "its WebSocket does not answer: %s", v.client.Excerpt(err.Error()))
}
