package reliability

import (
	_ "embed" // for the directive
	"fmt"
	"html/template"
	"io"

	"trajgen/outputs/estimate"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// plot is a picture of values with their intervals, one below the other.
type plot struct {
	Title string
	Axis  []tick
	Marks []mark
}

// The measures of a plot, in pixels: of the names, of the plane beside them, and of a line.
const (
	namesWidth = 320
	planeWidth = 480
	lineHeight = 22
)

// tick is a place on the axis.
type tick struct {
	X    float64
	Text string
}

// mark is a value with its interval.
type mark struct {
	Name         string
	Y            int
	X, Low, High float64
	Ranged       bool
	Text         string
}

// newPlot is an empty plot from low to high.
func newPlot(title string, low, high float64) (plot, func(float64) float64) {
	at := func(value float64) float64 { return namesWidth + planeWidth*(value-low)/(high-low) }
	p := plot{Title: title}
	for i := range 5 {
		value := low + (high-low)*float64(i)/4
		p.Axis = append(p.Axis, tick{at(value), fmt.Sprintf("%g", value)})
	}
	return p, at
}

func (p *plot) add(name string, at func(float64) float64, value float64, between *estimate.Interval) {
	m := mark{Name: name, Y: lineHeight * (len(p.Marks) + 1), X: at(value), Text: fmt.Sprintf("%.3f", value)}
	if between != nil {
		m.Ranged, m.Low, m.High = true, at(between.Low), at(between.High)
		m.Text += fmt.Sprintf(" [%.3f, %.3f]", between.Low, between.High)
	}
	p.Marks = append(p.Marks, m)
}

// Height is that of the whole picture, with its axis.
func (p plot) Height() int { return lineHeight * (len(p.Marks) + 2) }

// Bottom is where the axis is.
func (p plot) Bottom() int { return lineHeight*len(p.Marks) + lineHeight*2/3 }

// Width is that of the whole picture.
func (p plot) Width() int { return namesWidth + planeWidth + 200 }

// Right is where the numbers begin.
func (p plot) Right() int { return namesWidth + planeWidth + 12 }

// plots are those that have something in them.
func (r *Report) plots() (all []plot) {
	harm, at := newPlot("Harm per call", -1, 1)
	if r.Placebo != nil {
		harm.add("placebo", at, r.Placebo.Harm.Value, r.Placebo.Harm.Range)
	}
	for _, c := range r.Cells {
		if c.Harm.N > 0 {
			harm.add(c.name(), at, c.Harm.Value, c.Harm.Range)
		}
	}
	passes, at := newPlot("pass^k by level of faults", 0, 1)
	for _, level := range r.Levels {
		for _, rate := range level.PassHatK {
			var between *estimate.Interval
			if rate.Low != nil {
				between = &estimate.Interval{Low: *rate.Low, High: *rate.High}
			}
			passes.add(fmt.Sprintf("level %g, k = %d", level.Level, rate.K), at, rate.Value, between)
		}
	}
	for _, p := range []plot{harm, passes} {
		if len(p.Marks) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// name is the cell's in plots and headings.
func (c *Cell) name() string {
	name := c.Tool + " · " + c.Class
	if c.Position != "all" {
		name += " · " + c.Position + " calls"
	}
	if c.Unrecoverable {
		name += " (unrecoverable)"
	}
	return name
}

// WriteHTML writes the report as a page that needs no other file.
func (r *Report) WriteHTML(w io.Writer) error {
	type cell struct {
		Name  string
		Pairs int
		Worst []Fate
	}
	var cells []cell
	for _, c := range r.Cells {
		cells = append(cells, cell{c.name(), c.Harm.N, c.Worst})
	}
	return pageTemplate.Execute(w, map[string]any{
		"Facts": r.facts(), "Tables": r.tables(), "Plots": r.plots(), "Cells": cells, "Explanation": explanation, "Names": namesWidth,
	})
}
