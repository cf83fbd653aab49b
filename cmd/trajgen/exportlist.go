package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"trajgen/outputs/export"
)

// formatTexts lists the formats for the help, a line each.
func formatTexts() string {
	var text strings.Builder
	for _, name := range export.Names() {
		fmt.Fprintf(&text, "  %-22s %s\n", name, export.Formats()[name].About)
	}
	return text.String()
}

// variableTexts lists the names that a condition can use, a line each.
func variableTexts() string {
	var text strings.Builder
	for _, v := range export.Variables() {
		fmt.Fprintf(&text, "  %-18s %-16s %s\n", v.Name, v.Type, v.About)
	}
	return text.String()
}

// listedFormat is a format in export --list --json.
type listedFormat struct {
	Name     string            `json:"name"`
	About    string            `json:"about"`
	Folder   bool              `json:"folder"`
	Settings map[string]string `json:"settings,omitempty"`
}

func listFormats(w io.Writer, asJSON bool) error {
	var list []listedFormat
	for _, name := range export.Names() {
		format := export.Formats()[name]
		settings := map[string]string{}
		for name, setting := range format.Settings {
			settings[name] = setting.About
		}
		list = append(list, listedFormat{name, format.About, format.Folder, settings})
	}
	if asJSON {
		return writeJSON(w, list)
	}
	for _, format := range list {
		kind := "file"
		if format.Folder {
			kind = "directory"
		}
		fmt.Fprintf(w, "%s (%s): %s\n", format.Name, kind, format.About)
		for _, setting := range slices.Sorted(maps.Keys(format.Settings)) {
			fmt.Fprintf(w, "  --set %s=…  %s\n", setting, format.Settings[setting])
		}
	}
	return nil
}
