package corpus

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/datasets"
)

// rows reads a file of rows, each of them a document.
func (r *reader) rows(path string) error {
	for row, err := range datasets.Rows(path) {
		if broken, ok := errors.AsType[*datasets.RowError](err); ok {
			if !r.bad(broken.Place(), errors.New(broken.Reason)) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		d, err := r.row(row)
		if err != nil && !r.bad(row.Place, err) || err == nil && !r.give(d) {
			return nil
		}
	}
	return nil
}

// row makes a document of a row.
func (r *reader) row(row datasets.Row) (d Document, err error) {
	d.Place = row.Place
	found := map[string]bool{}
	for _, field := range []struct {
		name string
		into *string
	}{{"id", &d.ID}, {"title", &d.Title}, {"url", &d.URL}, {"text", &d.Text}} {
		column := cmp.Or(r.Map[field.name], field.name)
		value, ok := row.Fields[column]
		if !ok {
			if r.Map[field.name] != "" {
				return d, fmt.Errorf("it has no column %q for the %s (have %s)", column, field.name, columns(row))
			}
			continue
		}
		found[field.name] = true
		if *field.into, err = asText(value); err != nil {
			return d, fmt.Errorf("%s: %w", column, err)
		}
	}
	if contents, ok := row.Fields["contents"]; ok && !found["text"] {
		if d.Text, err = asText(contents); err != nil {
			return d, fmt.Errorf("contents: %w", err)
		}
		if first, rest, two := strings.Cut(d.Text, "\n"); two && !found["title"] {
			d.Title, d.Text = strings.Trim(first, `"`), rest
		}
	} else if !found["text"] {
		return d, fmt.Errorf("it has neither text nor contents (have %s); say which column is the text, as in --map text=body",
			columns(row))
	}
	if d.ID = cmp.Or(d.ID, d.URL); d.ID == "" {
		return d, fmt.Errorf("it has neither id nor url (have %s); say which column is the id, as in --map id=_id", columns(row))
	}
	return d, nil
}

func columns(row datasets.Row) string {
	return strings.Join(slices.Sorted(maps.Keys(row.Fields)), ", ")
}

// asText takes a string, or a number as it was written.
func asText(value json.RawMessage) (string, error) {
	var text string
	if err := json.Unmarshal(value, &text); err == nil {
		return text, nil
	}
	var number json.Number
	if err := json.Unmarshal(value, &number); err != nil {
		return "", errors.New("want a text")
	}
	return number.String(), nil
}
