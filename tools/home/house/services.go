package house

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// service is a service of the home, as data: it sets what its fields say, and a state.
type service struct {
	about  string
	fields []field
	state  string                     // afterwards; "" leaves it to then
	then   func(s *State, old string) // what else follows from the fields
}

// field is what a service takes: a number, or a text.
type field struct {
	name, about string
	attribute   string // that it sets; "" for none
	from, to    float64
	list        string // the attribute that lists the texts that it may be
	needed      bool
}

func (f field) describe() string {
	if f.to > 0 {
		return fmt.Sprintf("%s, %v to %v", f.about, f.from, f.to)
	}
	return f.about
}

// toggled is the other state.
func toggled(s *State, old string) {
	if s.State = "on"; old == "on" {
		s.State = "off"
	}
}

func onOff(what string, fields ...field) map[string]service {
	return map[string]service{
		"turn_on":  {about: "Turns " + what + " on", fields: fields, state: "on"},
		"turn_off": {about: "Turns " + what + " off", state: "off"},
		"toggle":   {about: "Turns " + what + " on or off, whichever it is not", then: toggled},
	}
}

func with(all map[string]service, more map[string]service) map[string]service {
	maps.Copy(all, more)
	return all
}

// lit keeps the brightness of a light in step with its state.
func lit(s *State, _ string) {
	bright, _ := s.Attributes["brightness"].(float64)
	if percent, ok := s.Attributes["brightness_pct"].(float64); ok {
		bright = math.Round(percent * 255 / 100)
		delete(s.Attributes, "brightness_pct")
		s.Attributes["brightness"] = bright
	}
	switch {
	case s.State == "off":
		s.Attributes["brightness"] = 0.0
	case bright == 0:
		s.Attributes["brightness"] = 255.0
	}
}

// placed keeps the state of a cover in step with its position.
func placed(s *State, _ string) {
	if at, _ := s.Attributes["current_position"].(float64); at > 0 {
		s.State = "open"
	} else {
		s.State = "closed"
	}
}

func blown(s *State, _ string) {
	speed, _ := s.Attributes["percentage"].(float64)
	switch {
	case s.State == "off":
		s.Attributes["percentage"] = 0.0
	case speed == 0:
		s.Attributes["percentage"] = 100.0
	}
}

var services = map[string]map[string]service{
	"light": {
		"turn_on": {about: "Turns a light on, or changes it", state: "on", then: lit, fields: []field{
			{name: "brightness", about: "Brightness", attribute: "brightness", to: 255},
			{name: "brightness_pct", about: "Brightness in percent", attribute: "brightness_pct", to: 100},
			{name: "color_name", about: "Colour", attribute: "color_name"},
			{name: "color_temp_kelvin", about: "Temperature of white in kelvin", attribute: "color_temp_kelvin", from: 2000, to: 6500},
		}},
		"turn_off": {about: "Turns a light off", state: "off", then: lit},
		"toggle":   {about: "Turns a light on or off, whichever it is not", then: func(s *State, old string) { toggled(s, old); lit(s, old) }},
	},
	"switch": onOff("a switch"),
	"fan": {
		"turn_on": {about: "Turns a fan on", state: "on", then: blown, fields: []field{
			{name: "percentage", about: "Speed in percent", attribute: "percentage", from: 1, to: 100}}},
		"turn_off": {about: "Turns a fan off", state: "off", then: blown},
		"set_percentage": {about: "Sets the speed of a fan", state: "on", then: func(s *State, old string) {
			if speed, _ := s.Attributes["percentage"].(float64); speed == 0 {
				s.State = "off"
			}
		}, fields: []field{{name: "percentage", about: "Speed in percent", attribute: "percentage", to: 100, needed: true}}},
	},
	"cover": {
		"open_cover":  {about: "Opens a cover", then: func(s *State, old string) { s.Attributes["current_position"] = 100.0; placed(s, old) }},
		"close_cover": {about: "Closes a cover", then: func(s *State, old string) { s.Attributes["current_position"] = 0.0; placed(s, old) }},
		"set_cover_position": {about: "Moves a cover", then: placed, fields: []field{
			{name: "position", about: "Position, 0 is closed", attribute: "current_position", to: 100, needed: true}}},
	},
	"climate": {
		"turn_on":  {about: "Turns a thermostat on", state: "heat"},
		"turn_off": {about: "Turns a thermostat off", state: "off"},
		"set_hvac_mode": {about: "Sets the mode of a thermostat", fields: []field{
			{name: "hvac_mode", about: "Mode", list: "hvac_modes", attribute: "hvac_mode", needed: true}}, then: moded},
		"set_temperature": {about: "Sets the temperature of a thermostat", then: moded, fields: []field{
			{name: "temperature", about: "Degrees Celsius", attribute: "temperature", from: 7, to: 30, needed: true},
			{name: "hvac_mode", about: "Mode", list: "hvac_modes", attribute: "hvac_mode"}}},
	},
	"lock": {
		"lock":   {about: "Locks a lock", state: "locked"},
		"unlock": {about: "Unlocks a lock", state: "unlocked"},
	},
	"media_player": with(onOff("a player"), map[string]service{
		"media_play":  {about: "Plays", state: "playing"},
		"media_pause": {about: "Pauses", state: "paused"},
		"volume_set": {about: "Sets the volume", fields: []field{
			{name: "volume_level", about: "Volume", attribute: "volume_level", to: 1, needed: true}}},
		"select_source": {about: "Chooses what is played", fields: []field{
			{name: "source", about: "Source", attribute: "source", list: "source_list", needed: true}}},
	}),
	"vacuum": {
		"start":          {about: "Starts to clean", state: "cleaning"},
		"pause":          {about: "Pauses", state: "paused"},
		"return_to_base": {about: "Goes back to the dock", state: "returning"},
	},
	"alarm_control_panel": {
		"alarm_arm_away": {about: "Arms the alarm when all have gone", state: "armed_away"},
		"alarm_arm_home": {about: "Arms the alarm while people are at home", state: "armed_home"},
		"alarm_disarm":   {about: "Disarms the alarm", state: "disarmed"},
	},
}

// moded takes a thermostat's mode for its state.
func moded(s *State, _ string) {
	if mode, ok := s.Attributes["hvac_mode"].(string); ok {
		s.State = mode
		delete(s.Attributes, "hvac_mode")
	}
}

// check says what is wrong with the data of a call.
func (s service) check(data map[string]any) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(data)) {
		i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == name })
		if i < 0 {
			wrong = append(wrong, fmt.Errorf("extra keys not allowed @ data['%s']", name))
			continue
		}
		f := s.fields[i]
		text, isText := data[name].(string)
		n, isNumber := data[name].(float64)
		switch {
		case f.to > 0 && (!isNumber || !(n >= f.from && n <= f.to)):
			wrong = append(wrong, fmt.Errorf("%s is %v; want a number from %v to %v", name, data[name], f.from, f.to))
		case f.to == 0 && (!isText || text == ""):
			wrong = append(wrong, fmt.Errorf("%s is %v; want a text", name, data[name]))
		}
	}
	for _, f := range s.fields {
		if _, given := data[f.name]; f.needed && !given {
			wrong = append(wrong, fmt.Errorf("required key not provided @ data['%s']", f.name))
		}
	}
	return errors.Join(wrong...)
}

// apply changes an entity.
func (s service) apply(to *State, data map[string]any) error {
	old := to.State
	for _, f := range s.fields {
		value, given := data[f.name]
		if !given {
			continue
		}
		if have, ok := to.Attributes[f.list].([]any); ok && !slices.Contains(have, value) {
			return fmt.Errorf("%s is %v; want one of %v", f.name, value, have)
		}
		to.Attributes[f.attribute] = value
	}
	if s.state != "" {
		to.State = s.state
	}
	if s.then != nil {
		s.then(to, old)
	}
	return nil
}
