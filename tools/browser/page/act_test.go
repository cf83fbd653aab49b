package page_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/browser/page"
)

func TestClick(t *testing.T) {
	tests := []struct {
		name, page string
		refs       []string // clicked one after the other
		class      string   // of the last one
		says       string   // in the error
		want       string   // on the page afterwards
	}{
		{name: "covered", page: "covered.html", refs: []string{`button "Buy"`}, class: "covered", says: `covered by dialog "Cookies"`},
		{name: "uncovered", page: "covered.html", refs: []string{`button "Accept"`, `button "Buy"`}, want: `button "Bought"`},
		{name: "below a bar", page: "covered.html", refs: []string{`button "Accept"`, `button "Low"`, `button "Buy"`}, want: `button "Bought"`},
		{name: "far down", page: "covered.html", refs: []string{`button "Accept"`, `button "Low"`}, want: `button "Reached"`},
		{name: "open shadow root", page: "shadow.html", refs: []string{`button "Open button"`}, want: `paragraph: "open clicked"`},
		{name: "closed shadow root", page: "shadow.html", refs: []string{`button "Closed button"`}, want: `paragraph: "closed clicked"`},
		{name: "same-site frame", page: "frames.html", refs: []string{"snapshot", "f1e1"}, want: `button "Pressed" [ref=f1e1]`},
		{name: "srcdoc", page: "frames.html", refs: []string{`button "In srcdoc"`}, want: `button "Pressed" [ref=f3e1]`},
		{name: "sandboxed frame", page: "frames.html", refs: []string{"snapshot", "f4e1"}, want: `button "Pressed" [ref=f4e1]`},
		{name: "frame of another site", page: "frames.html", refs: []string{"snapshot", "f6e1"}, want: `button "Pressed" [ref=f6e1]`},
		{name: "frame in a frame", page: "frames.html", refs: []string{"snapshot", "f7e1"}},
		{name: "checkbox", page: "forms.html", refs: []string{`checkbox "Newsletter"`}, want: `checkbox "Newsletter" [ref=e20] [checked]`},
		{name: "radio", page: "forms.html", refs: []string{`radio "Paid"`}, want: `radio "Paid" [ref=e19] [checked]`},
		{name: "option", page: "forms.html", refs: []string{`option "S"`}, want: `combobox "Size" [ref=e23] [focused]: "S"`},
		{name: "option events", page: "forms.html", refs: []string{`option "S"`}, want: `status: "input:size change:size"`},
		{name: "option of many", page: "forms.html", refs: []string{`option "Jam"`, `option "Salt"`, `option "Jam"`},
			want: `listbox "Toppings" [ref=e27] [multiple] [focused]: "Salt"`},
		{name: "option far down the list", page: "forms.html", refs: []string{`option "Country 55"`}, want: `: "Country 55"`},
		{name: "disabled option", page: "forms.html", refs: []string{`option "L"`}, class: "disabled"},
		{name: "native list", page: "forms.html", refs: []string{`combobox "Size"`}, class: "native_list", says: "click one of its options"},
		{name: "native picker", page: "forms.html", refs: []string{`button "Colour"`}, class: "native_picker", says: "#ff8800"},
		{name: "disabled", page: "forms.html", refs: []string{`button "Later"`}, class: "disabled"},
		{name: "file", page: "forms.html", refs: []string{`button "CV"`}, class: "takes_files", says: "browser_upload"},
		{name: "details", page: "forms.html", refs: []string{`button "More"`}, want: `button "Hidden in details"`},
		{name: "without a role", page: "odd.html", refs: []string{`clickable "Open card"`}, want: `paragraph: "card"`},
		{name: "a line of the snapshot", page: "odd.html", refs: []string{"snapshot", `- clickable "Open card" [ref=e1]`}, want: `paragraph: "card"`},
		{name: "the other form", page: "odd.html", refs: []string{"snapshot", "@e1"}, want: `paragraph: "card"`},
		{name: "several", page: "frames.html", refs: []string{`button "Inside"`}, class: "ambiguous_ref", says: "3 elements of the page"},
		{name: "not there", page: "forms.html", refs: []string{`button "Fly"`}, class: "not_found", says: `button "Send"`},
		{name: "no such role", page: "odd.html", refs: []string{`tab "Fly"`}, class: "not_found"},
		{name: "never shown", page: "forms.html", refs: []string{"snapshot", "e4000"}, class: "unknown_ref"},
		{name: "no such frame", page: "forms.html", refs: []string{"f9e1"}, class: "unknown_ref"},
		{name: "too large", page: "forms.html", refs: []string{"e99999999999999999999"}, class: "bad_ref"},
		{name: "a selector", page: "forms.html", refs: []string{"#buy > .x"}, class: "bad_ref"},
		{name: "empty", page: "forms.html", refs: []string{""}, class: "bad_ref"},
	}
	tb := open(t, "<p>")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tb.t = t
			tb.start(tt.page)
			var err error
			for i, ref := range tt.refs {
				if ref == "snapshot" {
					tb.show(page.SnapshotOptions{})
					continue
				}
				if _, err = tb.Click(tb.ctx, ref); err != nil && i < len(tt.refs)-1 {
					t.Fatalf("click %s: %v", ref, err)
				}
			}
			if got := class(err); got != tt.class {
				t.Fatalf("class = %q (%v), want %q", got, err, tt.class)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error = %q, want %q in it", err, tt.says)
			}
			tb.want(tt.want)
		})
	}
}

func TestStale(t *testing.T) {
	tb := open(t, "<button onclick='this.remove()'>Once</button><button>Other</button>")
	tb.show(page.SnapshotOptions{})
	click := func(ref string) string {
		_, err := tb.Click(tb.ctx, ref)
		return class(err)
	}
	if got := click("e1"); got != "" {
		t.Fatalf("first click: %s", got)
	}
	if got := click("e1"); got != "stale_ref" {
		t.Errorf("click on what is gone: %q", got)
	}
	tb.load("forms.html")
	if got := click("e2"); got != "stale_ref" {
		t.Errorf("click with a ref of the page before: %q", got)
	}
	tb.want(`link "Home" [ref=e3]`) // refs are not used again
}

func TestType(t *testing.T) {
	tests := []struct {
		ref, text string
		submit    bool
		page      string
		class     string
		says      string
		typed     page.Typed
		want      string
	}{
		{ref: `textbox "User name"`, text: "Ann", typed: page.Typed{Text: "Ann"}, want: `"User name" [ref=e4] [required] [focused]: "Ann"`},
		{ref: `textbox "User name"`, text: "Ann", submit: true, typed: page.Typed{Text: "Ann"}, want: `status: "sent Ann"`},
		{ref: `textbox "About"`, text: "new\ntext", typed: page.Typed{Text: "new\ntext"}, want: `: "new text"`},
		{ref: `textbox "About"`, text: "", typed: page.Typed{}, want: `textbox "About" [ref=e93] [focused]`},
		{ref: `textbox "Password"`, text: "hunter22", typed: page.Typed{Text: "8 characters"}, want: `: "8 characters"`},
		{ref: `textbox "Story"`, text: "The end: ü 漢", typed: page.Typed{Text: "The end: ü 漢"}, want: `: "The end: ü 漢"`},
		{ref: `spinbutton "Count"`, text: "7", typed: page.Typed{Text: "7"}, want: `: "7"`},
		{ref: `spinbutton "Count"`, text: "x", typed: page.Typed{Text: "x"}, want: `spinbutton "Count" [ref=e10]`},
		{ref: `combobox "City"`, text: "Bern", typed: page.Typed{Text: "Bern"}, want: `: "Bern"`},
		{ref: `textbox "Birthday"`, text: "2026-02-28", typed: page.Typed{Text: "2026-02-28"}, want: `: "2026-02-28"`},
		{ref: `textbox "Birthday"`, text: "28 February", class: "bad_value", says: "2026-11-23"},
		{ref: `textbox "Meeting"`, text: "2026-02-28T09:30", typed: page.Typed{Text: "2026-02-28T09:30"}, want: `: "2026-02-28T09:30"`},
		{ref: `textbox "At"`, text: "25:00", class: "bad_value", says: "14:30"},
		{ref: `textbox "Week"`, text: "2026-W09", typed: page.Typed{Text: "2026-W09"}, want: `: "2026-W09"`},
		{ref: `button "Colour"`, text: "#FF0000", typed: page.Typed{Text: "#FF0000"}, want: `: "#ff0000"`},
		{ref: `slider "Volume"`, text: "35", typed: page.Typed{Text: "35"}, want: `status: "input:vol change:vol"`},
		{ref: `slider "Volume"`, text: "36", class: "bad_value", says: "from 0 to 100 in steps of 5"},
		{ref: `combobox "Size"`, text: "s", typed: page.Typed{Text: "s"}, want: `combobox "Size" [ref=e23] [focused]: "S"`},
		{ref: `combobox "Country"`, text: "Country 5", typed: page.Typed{Text: "Country 5"}, want: `: "Country 5"`},
		{ref: `combobox "Country"`, text: "Atlantis", class: "bad_value", says: "and 30 more"},
		{ref: `checkbox "Newsletter"`, text: "yes", class: "not_editable", says: "browser_click"},
		{ref: `button "CV"`, text: "cv.pdf", class: "takes_files", says: "browser_upload"},
		{ref: `button "Send"`, text: "x", class: "not_editable"},
		{ref: `textbox "Fixed"`, text: "x", class: "not_editable", says: "only be read"},
		{ref: `textbox "Off"`, text: "x", class: "disabled"},
		{ref: `textbox "Deep field"`, text: "deep", page: "shadow.html", typed: page.Typed{Text: "deep"}, want: `: "deep"`},
		{ref: `textbox "Closed field"`, text: "shut", page: "shadow.html", typed: page.Typed{Text: "shut"}, want: `: "shut"`},
		{ref: "f6e2", text: "there", page: "frames.html", typed: page.Typed{Text: "there"}, want: `[ref=f6e2] [focused]: "there"`},
	}
	tb := open(t, "<p>")
	for _, tt := range tests {
		t.Run(tt.ref+" "+tt.text, func(t *testing.T) {
			if tt.page == "" {
				tt.page = "forms.html"
			}
			tb.t = t
			tb.start(tt.page)
			tb.show(page.SnapshotOptions{})
			typed, err := tb.Type(tb.ctx, tt.ref, tt.text, tt.submit)
			if got := class(err); got != tt.class {
				t.Fatalf("class = %q (%v), want %q", got, err, tt.class)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error = %q, want %q in it", err, tt.says)
				}
				return
			}
			typed.Element = ""
			if tt.text != "x" { // what a number field holds then is empty
				if diff := cmp.Diff(tt.typed, typed); diff != "" {
					t.Errorf("typed (-want +got):\n%s", diff)
				}
			}
			tb.want(tt.want)
		})
	}
}

func TestPress(t *testing.T) {
	tests := []struct{ key, class, want string }{
		{"Escape", "", `paragraph: "escaped"`},
		{"esc", "", `paragraph: "escaped"`},
		{"Control+Shift+x", "unchanged", ""},
		{"Hyper+q", "unknown_key", ""},
		{"Enterr", "unknown_key", ""},
		{"", "unknown_key", ""},
	}
	tb := open(t, "<p>")
	for _, tt := range tests {
		tb.start("odd.html")
		err := tb.Press(tb.ctx, tt.key)
		if tt.class == "unchanged" {
			tt.class = ""
		}
		if got := class(err); got != tt.class {
			t.Errorf("press %q: class %q (%v), want %q", tt.key, got, err, tt.class)
		}
		tb.want(tt.want)
	}
	tb.start("forms.html")
	for _, step := range []string{"Control+a", "Delete", "h", "I", "+", "ArrowLeft", "Backspace", "Shift+Tab", "Tab", "End", "Shift+ö"} {
		if step == "Control+a" {
			if _, err := tb.Click(tb.ctx, `textbox "About"`); err != nil {
				t.Fatal(err)
			}
		}
		if err := tb.Press(tb.ctx, step); err != nil {
			t.Fatalf("press %s: %v", step, err)
		}
	}
	tb.want(`textbox "About" [ref=e93] [focused]: "h+Ö"`)
}

func TestScroll(t *testing.T) {
	tb := open(t, "covered.html")
	scroll := func(down bool, ref string) page.Scrolled {
		t.Helper()
		s, err := tb.Scroll(tb.ctx, down, ref)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := scroll(false, ""); s.Moved != 0 || s.Note != "Nothing moved: the page is at its start." {
		t.Errorf("up at the start: %+v", s)
	}
	if s := scroll(true, ""); s.Moved != 500 || s.Of != "page" || s.Note != "" {
		t.Errorf("down: %+v", s)
	}
	for range 10 {
		scroll(true, "")
	}
	if s := scroll(true, ""); s.Note != "Nothing moved: the page is at its end." {
		t.Errorf("down at the end: %+v", s)
	}
	tb = open(t, "odd.html")
	if s := scroll(true, `group "Rows"`); s.Moved != 500 || s.Of != `group "Rows"` {
		t.Errorf("a list: %+v", s)
	}
	if _, err := tb.Hover(tb.ctx, `group "Rows"`); err != nil {
		t.Fatal(err)
	}
	if s := scroll(false, ""); s.Moved != -500 || s.Of != `group "Rows"` {
		t.Errorf("below the mouse: %+v", s)
	}
	tb = open(t, "frames.html")
	if _, err := tb.Hover(tb.ctx, `iframe "same"`); err != nil {
		t.Fatal(err)
	}
	if s := scroll(true, ""); s.Moved != 500 || s.Of != "frame f1" {
		t.Errorf("a frame: %+v", s)
	}
	tb = open(t, "<p>short</p>")
	if s := scroll(true, ""); s.Moved != 0 || !strings.Contains(s.Note, "nothing to scroll") {
		t.Errorf("a short page: %+v", s)
	}
}

func TestDrag(t *testing.T) {
	tb := open(t, "odd.html")
	if _, _, err := tb.Drag(tb.ctx, `clickable "Drag me"`, `group "Basket"`); err != nil {
		t.Fatal(err)
	}
	tb.want(`paragraph: "dropped goods"`)
	if _, err := tb.Hover(tb.ctx, `menuitem "Hover me"`); err != nil {
		t.Fatal(err)
	}
	tb.want(`paragraph: "hovered"`)
}

func TestUpload(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.txt"), filepath.Join(dir, "two.txt")
	for _, path := range []string{one, two} {
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tb := open(t, "forms.html")
	upload := func(class_ string, ref string, paths ...string) {
		t.Helper()
		if _, err := tb.Upload(tb.ctx, ref, paths); class(err) != class_ {
			t.Errorf("upload to %s: %v, want class %q", ref, err, class_)
		}
	}
	upload("", `button "CV"`, one)
	tb.want(`button "CV" [ref=e94] [file]: "one.txt"`)
	upload("one_file", `button "CV"`, one, two)
	upload("", `button "Pictures"`, one, two)
	tb.want(`: "one.txt, two.txt"`)
	upload("no_picker", `button "Plain"`, one)
	tb.load(`<button onclick="picker.click()">Attach</button><input id=picker type=file style="display:none" onchange="out.textContent = this.files[0].name"><p id=out></p>`)
	upload("", `button "Attach"`, one)
	tb.want(`paragraph: "one.txt"`)
}

func TestImages(t *testing.T) {
	tb := open(t, "frames.html")
	images, total, err := tb.Images(tb.ctx)
	if err != nil || total != 3 || len(images) != 3 {
		t.Fatalf("images = %+v, %d, %v; want one of each inner page", images, total, err)
	}
	want := page.Image{Src: "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", Alt: "inner dot", Width: 1, Height: 1}
	images[0].Visible = false
	if diff := cmp.Diff(want, images[0]); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
	tb = open(t, `<div style="height:2000px"></div><img alt=below src=/a><script>for (let i = 0; i < 150; i++) document.body.prepend(Object.assign(new Image(1, 1), {src: "data:image/png;base64," + "A".repeat(1000)}))</script>`)
	images, total, err = tb.Images(tb.ctx)
	if err != nil || total != 151 || len(images) != 100 || !images[99].Visible || !strings.HasSuffix(images[0].Src, "… (1022 characters)") {
		t.Errorf("of 151 images came %d of %d, the last %+v, %v", len(images), total, images[len(images)-1], err)
	}
}

func TestScreenshot(t *testing.T) {
	tb := open(t, "covered.html")
	take := func(annotate bool) []byte {
		t.Helper()
		data, err := tb.Screenshot(tb.ctx, annotate)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	plain, marked := take(false), take(true)
	if bytes.Equal(plain, marked) || !bytes.Equal(plain, take(false)) {
		t.Error("marks cannot be seen, or stay on the page")
	}
	if dir := os.Getenv("SHOTS"); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "marked.png"), marked, 0o644)
	}
	if size, err := png.DecodeConfig(bytes.NewReader(plain)); err != nil || size.Width != 1280 || size.Height != 720 {
		t.Errorf("the picture is %+v, %v", size, err)
	}
}

func TestWait(t *testing.T) {
	tb := open(t, `<p id=a>Loading</p><script>setTimeout(() => { a.textContent = "All  done" }, 300)</script>`)
	for _, tt := range []struct {
		text string
		gone bool
		most time.Duration
		want bool
	}{
		{"all done", false, 10 * time.Second, true}, {"Loading", true, 10 * time.Second, true},
		{"never", false, 200 * time.Millisecond, false}, {"All done", true, 200 * time.Millisecond, false},
	} {
		if got, err := tb.Wait(tb.ctx, tt.text, tt.gone, tt.most); got != tt.want || err != nil {
			t.Errorf("wait for %q, gone %t: %t, %v", tt.text, tt.gone, got, err)
		}
	}
}
