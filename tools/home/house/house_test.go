package house_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trajgen/tools/home/house"
)

func open(t *testing.T, what string) *house.House {
	t.Helper()
	h, err := house.Open(json.RawMessage(what))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestCall(t *testing.T) {
	for _, tt := range []struct {
		service, data string
		want          string // the changed entities with their states, or the error
		attribute     string // of the first, with its value
	}{
		{"light.turn_on", `{"entity_id": "light.reading_lamp", "brightness_pct": 50}`, "light.reading_lamp=on", "brightness=128"},
		{"light.turn_on", `{"entity_id": "light.reading_lamp"}`, "light.reading_lamp=on", "brightness=255"},
		{"light.turn_on", `{"entity_id": "light.living_room"}`, "", ""}, // as it was on
		{"light.turn_off", `{"area_id": "living_room"}`, "light.living_room=off", "brightness=0"},
		{"light.turn_off", `{"entity_id": ["light.desk", "light.hall", "switch.oven", "light.nowhere"]}`, "light.desk=off light.hall=off", ""},
		{"light.toggle", `{"entity_id": "light.desk,light.bedroom"}`, "light.bedroom=on light.desk=off", "brightness=255"},
		{"switch.toggle", `{"entity_id": "switch.oven"}`, "switch.oven=off", ""},
		{"cover.set_cover_position", `{"entity_id": "cover.garage_door", "position": 0}`, "cover.garage_door=closed", "current_position=0"},
		{"climate.set_temperature", `{"entity_id": "climate.bedroom", "temperature": 19.5, "hvac_mode": "heat"}`, "climate.bedroom=heat", "temperature=19.5"},
		{"media_player.select_source", `{"entity_id": "media_player.television", "source": "Radio"}`, "media_player.television=on", "source=Radio"},
		{"fan.set_percentage", `{"entity_id": "fan.office", "percentage": 0}`, "fan.office=off", "percentage=0"},
		{"light.turn_on", `{"entity_id": "light.desk", "brightness": 256}`, "brightness is 256; want a number from 0 to 255", ""},
		{"light.turn_on", `{"entity_id": "light.desk", "brightnes": 2}`, "extra keys not allowed @ data['brightnes']", ""},
		{"light.turn_on", `{}`, "it needs an entity_id", ""},
		{"light.turn_on", `{"entity_id": {"a": 1}}`, "is not a name or a list of names", ""},
		{"cover.set_cover_position", `{"entity_id": "cover.garage_door"}`, "required key not provided @ data['position']", ""},
		{"climate.set_hvac_mode", `{"entity_id": "climate.bedroom", "hvac_mode": "boil"}`, "hvac_mode is boil; want one of", ""},
		{"light.explode", `{"entity_id": "light.desk"}`, "service light.explode does not exist", ""},
	} {
		h := open(t, "")
		before, err := h.Judged()
		if err != nil {
			t.Fatal(err)
		}
		var data map[string]any
		if err := json.Unmarshal([]byte(tt.data), &data); err != nil {
			t.Fatal(err)
		}
		domain, service, _ := strings.Cut(tt.service, ".")
		changed, err := h.Call(domain, service, data)
		var got []string
		for _, s := range changed {
			got = append(got, s.ID+"="+s.State)
		}
		if err != nil {
			if after, _ := h.Judged(); !strings.Contains(err.Error(), tt.want) || tt.want == "" || string(after) != string(before) {
				t.Errorf("%s %s: %v, want %q", tt.service, tt.data, err, tt.want)
			}
			continue
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %s: %v, want %q", tt.service, tt.data, got, tt.want)
		}
		if name, value, ok := strings.Cut(tt.attribute, "="); ok && fmt.Sprint(changed[0].Attributes[name]) != value {
			t.Errorf("%s %s: %s is %v, want %s", tt.service, tt.data, name, changed[0].Attributes[name], value)
		}
		var judged struct {
			Changed []string
			Calls   []struct {
				Service  string
				Entities []string
			}
		}
		text, err := h.Judged()
		if err == nil {
			err = json.Unmarshal(text, &judged)
		}
		if err != nil || len(judged.Changed) != len(changed) || len(judged.Calls) != 1 || judged.Calls[0].Service != tt.service {
			t.Errorf("%s: judged by %+v, %v", tt.service, judged, err)
		}
	}
}

// TestHomesAreApart holds that no home sees what happens in another, and that a task's changes are its own.
func TestHomesAreApart(t *testing.T) {
	first, second := open(t, `{"light.attic": {"state": "on", "area": "Attic"}, "light.desk": {"attributes": {"brightness": 1}}}`), open(t, "")
	if _, err := first.Call("light", "turn_off", map[string]any{"entity_id": "all"}); err != nil {
		t.Fatal(err)
	}
	if s, ok := second.State("light.desk"); !ok || s.State != "on" || s.Attributes["brightness"] != 200.0 {
		t.Errorf("%+v", s)
	}
	if _, ok := second.State("light.attic"); ok || first.Areas()["light.attic"] != "Attic" {
		t.Error("the attic")
	}
	if s, _ := first.State("light.attic"); s.State != "off" || s.Attributes["friendly_name"] != "attic" {
		t.Errorf("%+v", s)
	}
}
