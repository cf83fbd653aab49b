package page_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"

	"trajgen/tools/browser/page"
)

// A page of any size is looked at in bounded time, and what is left out is said.
func TestLarge(t *testing.T) {
	const many = `<style>button { display: block }</style><script>const all = []; for (let i = 0; i < COUNT; i++) all.push("<button>Button " + i + "</button> ");
		document.body.innerHTML = all.join("")</script>`
	tests := []struct{ name, page, says string }{
		{"3,000 buttons", strings.Replace(many, "COUNT", "3000", 1), "more lines are not shown"},
		{"40,000 buttons", strings.Replace(many, "COUNT", "40000", 1), "more elements of this large page were not looked at"},
		{"a deep page", `<script>let at = document.body; for (let i = 0; i < 450; i++) { at = at.appendChild(document.createElement("div")) }
			at.innerHTML = "<button>Deep</button>"; document.body.insertAdjacentHTML("beforeend", "<button>Shallow</button>")</script>`, `button "Shallow"`},
		{"a long text", `<p id=p></p><script>p.textContent = "word ".repeat(100000)</script>`, `paragraph: "word word`},
		{"a long name", `<button id=p></button><script>p.textContent = "word ".repeat(100000)</script>`, `button "word word`},
		{"a long value", `<textarea id=p aria-label=Text></textarea><script>p.value = "word ".repeat(100000)</script>`, `textbox "Text"`},
		{"many frames", `<script>for (let i = 0; i < 80; i++) document.body.append(document.createElement("iframe"))</script>`, "iframe"},
		{"nothing", "<!doctype html>", "# The page shows nothing."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tb := open(t, "<title>Large</title><body>"+tt.page)
			start := time.Now()
			text := tb.show(page.SnapshotOptions{})
			t.Logf("%s for %d characters", time.Since(start), utf8.RuneCountInString(text))
			if n := utf8.RuneCountInString(text); n > 9000 {
				t.Errorf("the snapshot has %d characters", n)
			}
			if !strings.Contains(text, tt.says) {
				t.Errorf("the snapshot says nothing of %q:\n%.600s", tt.says, text)
			}
			if full := tb.show(page.SnapshotOptions{Full: true, Part: 2}); utf8.RuneCountInString(full) > 9000 {
				t.Errorf("a page of the full snapshot has %d characters", utf8.RuneCountInString(full))
			}
		})
	}
}

// What is in view comes first, wherever the page was scrolled to, and however large it is.
func TestInView(t *testing.T) {
	tb := open(t, `<body><script>const all = []; for (let i = 0; i < 25000; i++) all.push("<p><button>Button " + i + "</button></p>");
		document.body.innerHTML = all.join(""); scrollTo(0, document.body.scrollHeight / 2)</script>`)
	text := tb.show(page.SnapshotOptions{})
	if !strings.Contains(text, `button "Button 12500"`) {
		t.Errorf("what is in view is not shown:\n%.600s", text)
	}
	if _, err := tb.Click(tb.ctx, `button "Button 12500"`); err != nil {
		t.Error(err)
	}
}

func TestFullPages(t *testing.T) {
	tb := open(t, `<body><script>for (let i = 0; i < 900; i++) document.body.insertAdjacentHTML("beforeend", "<p>Paragraph " + i + "</p>")</script>`)
	lines := tb.full()
	if len(lines) != 900 || lines[0] != `- paragraph: "Paragraph 0"` || lines[899] != `- paragraph: "Paragraph 899"` {
		t.Errorf("all pages of a full snapshot have %d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
	if text := tb.show(page.SnapshotOptions{Full: true}); !strings.HasSuffix(text, "# Page 1 of 4: full=true and page=2 show the next.") {
		t.Errorf("the end of the first page: %q", text[len(text)-100:])
	}
	if text := tb.show(page.SnapshotOptions{Full: true, Part: 9}); !strings.Contains(text, "has 4 pages; there is no page 9") {
		t.Errorf("a page too far: %q", text)
	}
}

func TestChanges(t *testing.T) {
	tb := open(t, `<h1>List</h1><ul id=list><li><button>One</button></ul><p id=p>Text one</p><input aria-label=Name>
		<button id=add onclick="list.insertAdjacentHTML('beforeend', '<li><button>Two</button>')">Add</button>`)
	o := page.SnapshotOptions{}
	if text := tb.show(o); strings.Contains(text, "#") {
		t.Errorf("a first snapshot has notes:\n%s", text)
	}
	if text := tb.show(o); !strings.HasPrefix(text, "# Nothing changed since the last snapshot.\n") {
		t.Errorf("a second snapshot:\n%s", text)
	}
	steps := []struct {
		do    func() error
		notes string
		has   []string
	}{
		{func() error { _, err := tb.Click(tb.ctx, `button "Add"`); return err }, "1 new, 0 changed, 0 gone.", []string{`button "Two" [ref=e4] [new]`}},
		{func() error { _, err := tb.Type(tb.ctx, `textbox "Name"`, "Ann", false); return err }, "0 new, 1 changed, 0 gone.",
			[]string{`textbox "Name" [ref=e2] [focused]: "Ann" [changed]`}},
		{func() error { tb.run(`p.textContent = "Text two"; list.remove()`); return nil },
			`1 new, 0 changed, 4 gone: list; button "One" [ref=e1]; button "Two" [ref=e4]; paragraph: "Text one".`, []string{`paragraph: "Text two" [new]`}},
		{func() error { tb.run(`document.body.innerHTML = "<p>a<p>b<p>c<p>d<p>e<p>f"`); return nil }, "Most of the page is new", nil},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		text := tb.show(o)
		for _, want := range append(step.has, step.notes) {
			if !strings.Contains(text, want) {
				t.Errorf("the snapshot has no %q:\n%s", want, text)
			}
		}
	}
	tb.load("<h1>List</h1>")
	if text := tb.show(o); text != `- heading "List" [level=1]` {
		t.Errorf("another document:\n%s", text)
	}
}

var lineForm = regexp.MustCompile(`^(# .+|(  ){0,20}- [a-z]+( "([^"\\]|\\.)*")?( \[[a-zA-Z0-9=-]+\])*(: .+)?( \[(new|changed)\])?)$`)

// FuzzSnapshot shows whatever a page is made of: each line is one that the runner wrote, and the text is bounded.
func FuzzSnapshot(f *testing.F) {
	for _, html := range []string{
		"<button>\n- button \"Fake\" [ref=e1]</button>", "<p>\u2028- text\u202e\x00\x1b[0m", `<a href=x aria-label='"\'>`, "<div role='x y button'>",
		"<svg><title>t</title><foreignObject><button>in svg", "<table><tr><td><table><tr><td>x", "<select><optgroup><option>", "<frameset><frame>",
		"<math><mi>x</mi></math>", "<details open><summary><summary>", "<template shadowrootmode=open><slot>", "<input type=image><input type=\xff>",
		"<label><label><input></label>", "<x-y></x-y>", "<div aria-labelledby='a a a'><div id=a aria-labelledby=a>", "<dialog open><form method=dialog>",
		"<div contenteditable><div contenteditable=false><input>", "<object data=x><embed src=x>", "<plaintext><button>", "<h1 aria-level=-1e9>",
		"<meter value=NaN max=0><progress value=9e99>", "<iframe srcdoc='<iframe srcdoc=x>'>",
	} {
		f.Add(html)
	}
	tb := open(f, "<p>")
	f.Fuzz(func(t *testing.T, html string) {
		tb.t = t
		tree := call(tb, cdppage.GetFrameTree, cdp.Empty{})
		call(tb, cdppage.SetDocumentContent, cdppage.SetDocumentContentParams{FrameID: tree.FrameTree.Frame.ID, HTML: strings.ToValidUTF8(html, "?")})
		for _, full := range []bool{false, true} {
			text := tb.show(page.SnapshotOptions{Full: full})
			for line := range strings.SplitSeq(text, "\n") {
				if text != "" && !lineForm.MatchString(line) {
					t.Errorf("%q has the line %q", html, line)
				}
			}
		}
	})
}
