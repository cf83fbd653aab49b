package run

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"trajgen/datasets"
)

// PrintDataset prints what a dataset is read as.
func PrintDataset(w io.Writer, s *datasets.Seen) error {
	const most = 10
	fmt.Fprintf(w, "%d tasks\n", s.Tasks)
	if text := LeftOut(s.Steps); text != "" {
		fmt.Fprintln(w, text)
	}
	if s.Card.Name != "" || len(s.Card.License) > 0 {
		fmt.Fprintf(w, "card: %s, license %s\n", QuoteEmpty(s.Card.Name), QuoteEmpty(strings.Join(s.Card.License, ", ")))
	}
	fmt.Fprintf(w, "\nfiles (%d):\n", len(s.Files))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, file := range s.Files {
		if i == most {
			fmt.Fprintf(table, "  and %d more\n", len(s.Files)-most)
			break
		}
		fmt.Fprintf(table, "  %s\t%s\n", file.Path, file.Format)
	}
	fmt.Fprintf(table, "\nfields\ttasks\n")
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		fmt.Fprintf(table, "  %s\t%d\n", name, s.Fields[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metadata)) {
		fmt.Fprintf(table, "  %s (metadata)\t%d\n", name, s.Metadata[name])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, task := range s.First {
		fmt.Fprintf(w, "\nrow %d, task %s\n", task.Row, task.ID)
		for _, message := range task.Prompt {
			fmt.Fprintf(w, "  %s: %s\n", message.Role, beginning(message.Content))
		}
		if len(task.Verify) > 0 {
			checks, err := json.Marshal(task.Verify)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "  verify: %s\n", beginning(string(checks)))
		}
	}
	if s.Repeated > 0 {
		fmt.Fprintf(w, "\n%d tasks have the id of an earlier one: they are played under ids of their own\n", s.Repeated)
	}
	for _, text := range s.Broken {
		fmt.Fprintf(w, "\nbroken: %s\n", text)
	}
	if reasons := s.Frequent(); len(reasons) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(reasons, "\n"))
	}
	return nil
}

// beginning is a text's first characters on one line.
func beginning(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
