package browser_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/browser"
)

// Pages find the same chance, day, language and window in each run.
func TestNavigate(t *testing.T) {
	b := open(t, sites{"shop.test": html(`<title>Shop</title><h1>Hello</h1><script>
window.found = [Math.random(), new Date().toISOString().slice(0, 10), Date().slice(11, 15), new Date(0).getTime(), new Date() instanceof Date, navigator.language,
Intl.DateTimeFormat().resolvedOptions().locale, Intl.DateTimeFormat().resolvedOptions().timeZone, innerWidth, innerHeight]</script>`)})
	report, arrived := visit(t, b, "http://shop.test/")
	if diff := cmp.Diff(browser.Arrived{Status: 200, Settled: true}, arrived); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if report.URL != "http://shop.test/" || report.Title != "Shop" || report.Requests != 1 || report.Mode != "live" || report.Tab != "t1" {
		t.Errorf("%+v", report)
	}
	const want = `[0.08538983040489256,"2026-01-01","2026",0,true,"en-US","en-US","UTC",1280,720]`
	for range 2 {
		if got := eval(t, b, "found"); got != want {
			t.Errorf("the page found %s, want %s", got, want)
		}
		visit(t, b, "http://shop.test/?again")
	}
}
