package progress

import (
	"fmt"
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"

	"trajgen/sandbox/images"
)

// Layers is a bar over the layers that are being fetched.
type Layers struct {
	mu   sync.Mutex // guards the fields below
	bar  *progressbar.ProgressBar
	done map[string]images.Progress // by layer
}

// NewLayers makes the bar in a terminal.
func NewLayers(w io.Writer, width int) *Layers {
	bar := newBar(w, -1, width, 70, progressbar.OptionShowBytes(true))
	return &Layers{bar: bar, done: map[string]images.Progress{}}
}

// Observe takes the store's progress on a layer.
func (p *Layers) Observe(layer images.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[layer.Layer] = layer
	var done, total int64
	ended := 0
	for _, l := range p.done {
		done, total = done+l.Done, total+max(l.Total, l.Done)
		if l.Ended {
			ended++
		}
	}
	p.bar.Describe(fmt.Sprintf("%s: %d of %d layers", layer.Image, ended, len(p.done)))
	p.bar.ChangeMax64(max(total, done+1)) // a full bar would end
	_ = p.bar.Set64(done)
}

// Clear removes the bar, so that a line can be written; nil has none.
func (p *Layers) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
	clear(p.done)
}
