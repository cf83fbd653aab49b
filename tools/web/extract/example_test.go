package extract_test

import (
	"context"
	"fmt"

	"trajgen/tools/web/extract"
	"trajgen/tools/web/source"
)

func Example() {
	body := `<html><head><title>Tides</title></head><body><nav><a href="/">Home</a></nav>
		<h2>High water</h2><table><tr><th>Day</th><th>Time</th></tr><tr><td>Friday</td><td>06:12</td></tr></table>
		<p>See the <a href="moon.html">phases of the moon</a>.</p></body></html>`
	x := extract.New(extract.Config{})
	page := x.Page(context.Background(), source.Page{URL: "https://harbour.example/tides/"}, []byte(body),
		"text/html; charset=utf-8")
	fmt.Println(page.Title, page.Type, page.Extractor)
	fmt.Println(page.Text)
	// Output:
	// Tides text/html body
	// ## High water
	//
	// | Day | Time |
	// |---|---|
	// | Friday | 06:12 |
	//
	// See the [phases of the moon](https://harbour.example/tides/moon.html).
}

func ExampleCut() {
	text := "# Tides\n\nHigh water is twice a day.\n\nLow water is between."
	for offset := 0; ; {
		part, next := extract.Cut(text, offset, 40)
		fmt.Printf("from %d: %q\n", offset, part)
		if next == 0 {
			break
		}
		offset = next
	}
	// Output:
	// from 0: "# Tides\n\nHigh water is twice a day.\n\n"
	// from 37: "Low water is between."
}
