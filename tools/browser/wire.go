package browser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

const (
	maxMessage = 96 << 20 // of what the browser sends; a body of 64 MB has 86 in base64
	maxEvent   = 1 << 20  // of what it tells by itself
)

// wire is chromedp's way to a browser: messages that end with a zero byte, both ways. What comes is bounded.
//
// The browser attaches to each page by itself, before the page runs. chromedp takes this session over, so that each page has
// one: its wish to attach becomes a question that changes nothing, and the answer names the session that there is.
type wire struct {
	in    *bufio.Reader
	out   io.Writer
	close func() error
	ended atomic.Bool

	mu       sync.Mutex // guards the rest
	sessions map[target.ID]target.SessionID
	asked    map[int64]target.SessionID // by the number of the question
}

func newWire(in io.Reader, out io.Writer, close func() error) *wire {
	return &wire{
		in: bufio.NewReaderSize(in, 64<<10), out: out, close: close,
		sessions: map[target.ID]target.SessionID{}, asked: map[int64]target.SessionID{},
	}
}

// Close implements chromedp.Transport. What is buffered is not read any more.
func (w *wire) Close() error {
	w.ended.Store(true)
	return w.close()
}

// Read implements chromedp.Transport.
func (w *wire) Read(_ context.Context, msg *cdproto.Message) error {
	for {
		text, err := w.next()
		if err != nil {
			return err
		}
		if w.ended.Load() {
			return io.EOF
		}
		*msg = cdproto.Message{}
		if err := jsonv2.Unmarshal(text, msg, chromedp.DefaultUnmarshalOptions); err != nil {
			return fmt.Errorf("read from the browser: %w", err)
		}
		if w.wanted(msg, len(text)) {
			return nil
		}
	}
}

// next reads a message. It skips one that is too long: a page may choose what stands in it.
func (w *wire) next() (text []byte, err error) {
	for size := 0; ; {
		part, err := w.in.ReadSlice(0)
		if size += len(part); size <= maxMessage {
			text = append(text, part...)
		} else {
			text = nil
		}
		switch {
		case err == nil && size <= maxMessage:
			return text[:len(text)-1], nil
		case err == nil:
			size = 0
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// wanted says whether chromedp gets a message. It mirrors the nodes of a page, which no tool needs, and which a page can change a
// million times a second.
func (w *wire) wanted(msg *cdproto.Message, size int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if msg.ID != 0 {
		if session, ok := w.asked[msg.ID]; ok && msg.Error == nil {
			msg.Result = jsonv2.Value(fmt.Sprintf(`{"sessionId":%q}`, session))
		}
		delete(w.asked, msg.ID)
		return true
	}
	switch msg.Method {
	case "Fetch.requestPaused", "Page.javascriptDialogOpening":
		return true
	case "Target.attachedToTarget":
		var e target.EventAttachedToTarget
		if msg.SessionID == "" && jsonv2.Unmarshal(msg.Params, &e) == nil && e.TargetInfo != nil {
			w.sessions[e.TargetInfo.TargetID] = e.SessionID
		}
	case "Target.detachedFromTarget":
		var e target.EventDetachedFromTarget
		if msg.SessionID == "" && jsonv2.Unmarshal(msg.Params, &e) == nil {
			maps.DeleteFunc(w.sessions, func(_ target.ID, id target.SessionID) bool { return id == e.SessionID })
		}
	}
	switch msg.Method.Domain() {
	case "DOM", "CSS":
		return false
	}
	return size <= maxEvent
}

// Write implements chromedp.Transport.
func (w *wire) Write(_ context.Context, msg *cdproto.Message) error {
	if msg.Method == target.CommandAttachToTarget {
		msg = w.adopt(msg)
	}
	text, err := jsonv2.Marshal(msg, chromedp.DefaultMarshalOptions)
	if err != nil {
		return fmt.Errorf("write to the browser: %w", err)
	}
	_, err = w.out.Write(append(text, 0))
	return err
}

// adopt is what is asked in place of a wish to attach.
func (w *wire) adopt(msg *cdproto.Message) *cdproto.Message {
	var p target.AttachToTargetParams
	if jsonv2.Unmarshal(msg.Params, &p) != nil {
		return msg
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	session, ok := w.sessions[p.TargetID]
	if !ok {
		return msg
	}
	w.asked[msg.ID] = session
	return &cdproto.Message{
		ID: msg.ID, Method: target.CommandGetTargetInfo, Params: jsonv2.Value(fmt.Sprintf(`{"targetId":%q}`, p.TargetID)),
	}
}
