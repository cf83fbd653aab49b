package browser_test

import (
	"context"
	"testing"
	"time"

	"trajgen/tools/browser"
)

// run evaluates what may open a dialog.
func run(t testing.TB, b *client, expression string) (browser.Report, error) {
	t.Helper()
	return b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		_, err := tab.Evaluate(ctx, expression)
		return err
	})
}

func TestDialogs(t *testing.T) {
	b := open(t, sites{"site.test": html(`<title>Site</title><h1>x</h1>`), "greets.test": html(`<script>alert('hello')</script><h1>after</h1>`)})
	visit(t, b, "http://site.test/")
	report, err := run(t, b, "window.answer = prompt('Your name?', 'Ada')")
	if err != nil || report.Pending == nil || report.Pending.Type != "prompt" || report.Pending.Message != "Your name?" || report.Pending.Default != "Ada" {
		t.Fatalf("a prompt: %+v, %v", report.Pending, err)
	}
	// While it is open, other commands answer at once and are not run.
	ran := false
	report, err = b.do(t.Context(), func(context.Context, *browser.Tab) error { ran = true; return nil })
	if err != nil || ran || report.Pending == nil {
		t.Errorf("a command while a dialog is open: %+v, %v, ran %v", report.Pending, err, ran)
	}
	if _, _, err := b.Answer(t.Context(), b.box, "t9-d9", true, ""); classOf(err) != "no_dialog" {
		t.Errorf("another dialog was answered: %v", err)
	}
	if _, report, err = b.Answer(t.Context(), b.box, report.Pending.ID, true, "Grace"); err != nil || report.Pending != nil {
		t.Fatalf("answer: %+v, %v", report.Pending, err)
	}
	if got := eval(t, b, "answer"); got != `"Grace"` {
		t.Errorf("the page got %s", got)
	}
	if _, _, err := b.Answer(t.Context(), b.box, "", true, ""); classOf(err) != "no_dialog" {
		t.Errorf("a dialog was answered that is not there: %v", err)
	}
	// A page may open one before it is there.
	report, err = b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		_, err := tab.Navigate(ctx, "http://greets.test/")
		return err
	})
	if err != nil || report.Pending == nil || report.Pending.Message != "hello" || report.Dialogs != 1 {
		t.Fatalf("a page that greets: %+v, %v", report, err)
	}
	if _, _, err = b.Answer(t.Context(), b.box, "", false, ""); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, b, "document.querySelector('h1').textContent"); got != `"after"` {
		t.Errorf("after the dialog: %s", got)
	}
	// Leaving is never asked for.
	if _, err := run(t, b, "addEventListener('beforeunload', e => { e.preventDefault(); e.returnValue = 'stay' }); document.body.click()"); err != nil {
		t.Fatal(err)
	}
	if report, _ := visit(t, b, "http://site.test/"); report.Title != "Site" || len(report.Told) != 1 || report.Told[0].Action != "accepted" {
		t.Errorf("leaving: %+v", report)
	}
}

// Without a tool that answers them, dialogs are dismissed, and told.
func TestDialogsDismissed(t *testing.T) {
	b := open(t, sites{"site.test": html(`<h1>x</h1>`)}, func(c *browser.Config) { c.Answers = false })
	visit(t, b, "http://site.test/")
	report, err := run(t, b, "confirm('Sure?')")
	if err != nil || report.Pending != nil || len(report.Told) != 1 || report.Told[0].Action != "dismissed" {
		t.Errorf("%+v, %v", report, err)
	}
}

// A dialog that the agent does not answer is dismissed after a while, which the next call says.
func TestDialogsExpire(t *testing.T) {
	b := open(t, sites{"site.test": html(`<h1>x</h1>`)}, func(c *browser.Config) { browser.SetPatience(c, 100*time.Millisecond) })
	visit(t, b, "http://site.test/")
	report, err := run(t, b, "window.answer = prompt('Your name?', 'Ada')")
	if err != nil || report.Pending == nil {
		t.Fatalf("a prompt: %+v, %v", report, err)
	}
	time.Sleep(500 * time.Millisecond)
	report, err = run(t, b, "1")
	if err != nil || report.Pending != nil || len(report.Told) != 1 || report.Told[0].Action != "dismissed" ||
		report.Note != "The dialog t1-d1 was not answered within 100ms and was dismissed." {
		t.Errorf("the next call: %+v, %v", report, err)
	}
	if got := eval(t, b, "answer"); got != "null" {
		t.Errorf("the page got %s", got)
	}
}

// A page that opens dialogs without end loses its tab.
func TestDialogsWithoutEnd(t *testing.T) {
	for _, answers := range []bool{true, false} {
		b := open(t, sites{"loop.test": html(`<script>while (true) alert('x')</script>`), "site.test": html(`<h1>fine</h1>`)}, func(c *browser.Config) { c.Answers = answers })
		report, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Navigate(ctx, "http://loop.test/")
			return err
		})
		for range 10 {
			if report.Pending == nil {
				break
			}
			_, report, err = b.Answer(t.Context(), b.box, "", true, "")
		}
		if classOf(err) != "hostile_page" {
			t.Errorf("answers %v: %v, %+v", answers, err, report)
		}
		visit(t, b, "http://site.test/")
		if got := eval(t, b, "document.body.textContent"); got != `"fine"` {
			t.Errorf("afterwards: %s", got)
		}
	}
}
