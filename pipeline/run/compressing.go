package run

import (
	"context"
	"errors"
	"fmt"
	"io"

	"trajgen/outputs/compress"
	"trajgen/outputs/export"
)

// Compressing is an export of conversations that fit into a budget of tokens.
type Compressing struct {
	Exporting
	Fit     compress.Options
	Summary SummaryModel // writes what stands for the middle; without a name, a rule does
}

// Compression is what came of it.
type Compression struct {
	export.Result
	Statuses map[compress.Status]int `json:"statuses"`
	Before   int                     `json:"before_tokens"`
	After    int                     `json:"after_tokens"`
	Reasons  map[string]int          `json:"cannot_fit"`             // by reason
	Least    int                     `json:"least_tokens,omitempty"` // a budget into which all of those would fit
	Asked    int                     `json:"asked"`                  // summaries that a model wrote now
	Kept     int                     `json:"kept"`                   // summaries that existed before
}

// Write writes the export, and what was done to each episode beside it. Outages of the summary model are told on stderr.
func (c *Compressing) Write(ctx context.Context, stdout, stderr io.Writer) (result Compression, err error) {
	source, err := c.open()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := MakePlace(c.Out); err != nil {
		return result, AsMistake(fmt.Errorf("compress to %s: %w", c.Out, err))
	}
	marks, err := export.NewWholeLines[compress.Mark](c.Out + ".compression.jsonl")
	if err != nil {
		return result, AsMistake(err)
	}
	defer func() { err = errors.Join(err, marks.Close()) }()
	result.Statuses = map[compress.Status]int{compress.Fits: 0, compress.Compressed: 0, compress.CannotFit: 0}
	result.Reasons = map[string]int{}
	c.Fit.Measure = compress.Measure
	c.Fit.Mark = func(mark compress.Mark) error {
		result.add(mark)
		return marks.Add(mark)
	}
	if c.Summary.Name != "" {
		writer, err := c.Summary.Open(ctx, c.Out+".summaries.jsonl", stderr)
		if err != nil {
			return result, err
		}
		defer func() {
			result.Asked, result.Kept = writer.Asked(), writer.Had
			err = errors.Join(err, writer.Close())
		}()
		c.Fit.Summarise, c.Fit.MaxText = writer.Summarise, writer.MaxText(c.Fit.SummaryTokens)
	}
	shorter, err := compress.New(source, c.Fit)
	if err != nil {
		return result, AsMistake(err)
	}
	if result.Result, err = c.write(ctx, stdout, shorter); err != nil {
		return result, err
	}
	info, err := marks.Commit()
	result.Files = append(result.Files, info)
	return result, err
}

// add counts an episode.
func (c *Compression) add(mark compress.Mark) {
	c.Statuses[mark.Status]++
	c.Before += mark.Before
	c.After += mark.After
	if mark.Reason != "" {
		c.Reasons[mark.Reason]++
		c.Least = max(c.Least, mark.Least)
	}
}
