package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FormatTexts lists the formats for a help, a line each.
func FormatTexts() string {
	var text strings.Builder
	for _, name := range Names() {
		fmt.Fprintf(&text, "  %-22s %s\n", name, Formats()[name].About)
	}
	return text.String()
}

// VariableTexts lists the names that a condition can use, a line each.
func VariableTexts() string {
	var text strings.Builder
	for _, v := range Variables() {
		fmt.Fprintf(&text, "  %-18s %-16s %s\n", v.Name, v.Type, v.About)
	}
	return text.String()
}

// Listed is a format as a list of them shows it.
type Listed struct {
	Name     string            `json:"name"`
	About    string            `json:"about"`
	Folder   bool              `json:"folder"`
	Settings map[string]string `json:"settings,omitempty"` // what each is, by name
}

// List lists the formats that exist, sorted by name.
func List() []Listed {
	var list []Listed
	for _, name := range Names() {
		format := Formats()[name]
		settings := map[string]string{}
		for name, setting := range format.Settings {
			settings[name] = setting.About
		}
		list = append(list, Listed{name, format.About, format.Folder, settings})
	}
	return list
}

// Text is a line about the format and one for each of its settings.
func (l Listed) Text() string {
	var text strings.Builder
	kind := "file"
	if l.Folder {
		kind = "directory"
	}
	fmt.Fprintf(&text, "%s (%s): %s\n", l.Name, kind, l.About)
	for _, setting := range slices.Sorted(maps.Keys(l.Settings)) {
		fmt.Fprintf(&text, "  --set %s=…  %s\n", setting, l.Settings[setting])
	}
	return text.String()
}
