package reward_test

import (
	"encoding/json"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

// TestComparisons has what the checks of the answer take beyond the plain cases of TestAnswers.
func TestComparisons(t *testing.T) {
	quantity := func(n float64, unit string) episode.Check { return episode.Check{Number: &n, Unit: unit} }
	fields := func(places string) episode.Check {
		check := &episode.JSONCheck{}
		if err := json.Unmarshal([]byte(places), &check.Equal); err != nil {
			t.Fatal(err)
		}
		return episode.Check{JSON: check}
	}
	schema := func(text string) episode.Check {
		return episode.Check{JSON: &episode.JSONCheck{Schema: json.RawMessage(text)}}
	}
	options := func(check episode.Check, c episode.Comparison) episode.Check { check.Comparison = c; return check }
	paris := episode.Check{Exact: episode.Texts{"Paris", "Paris, France"}}
	both := episode.Check{Contains: episode.Texts{"red", "Blue"}}
	like := func(text, measure string, threshold float64) episode.Check {
		return episode.Check{Likeness: episode.Likeness{Similar: text, Measure: measure, Threshold: threshold}}
	}
	ten := 10.0
	tests := []struct {
		name   string
		check  episode.Check
		answer string
		want   float64
	}{
		{"exact, the second", paris, "Paris, France\n", 1},
		{"exact, none of them", paris, "paris", 0},
		{"exact, case", options(paris, episode.Comparison{Case: "ignore"}), "PARIS", 1},
		{"exact, case of other scripts", options(episode.Check{Exact: episode.Texts{"Straße"}}, episode.Comparison{Case: "ignore"}), "STRASSE", 1},
		{"exact, white space", options(paris, episode.Comparison{Trim: "all"}), "Paris,\n  France", 1},
		{"exact, nothing trimmed", options(paris, episode.Comparison{Trim: "none"}), "Paris ", 0},
		{"exact, composed", options(episode.Check{Exact: episode.Texts{"é"}}, episode.Comparison{Unicode: "nfc"}), "e\u0301", 1},
		{"exact, not composed", episode.Check{Exact: episode.Texts{"é"}}, "e\u0301", 0},
		{"exact, full width", options(episode.Check{Exact: episode.Texts{"42"}}, episode.Comparison{Unicode: "nfkc"}), "４２", 1},
		{"contains", both, "red and Blue", 1},
		{"contains, one of two", both, "red and blue", 0},
		{"contains, any", options(both, episode.Comparison{Match: "any"}), "red and blue", 1},
		{"contains, none of any", options(both, episode.Comparison{Match: "any"}), "green", 0},
		{"contains, case", options(both, episode.Comparison{Case: "ignore"}), "RED, BLUE", 1},
		{"contains, spaces count", episode.Check{Contains: episode.Texts{" a "}}, "a", 0},

		{"unit", quantity(3.2, "km"), "It is 3.2 km, run in 17 minutes.", 1},
		{"unit, converted", quantity(3.2, "km"), "It is **3200** m.", 1},
		{"unit, by name", quantity(3.2, "km"), "3.2 Kilometers", 1},
		{"unit, of the wrong size", quantity(3.2, "km"), "3.2 m", 0},
		{"unit, of another kind", quantity(3.2, "km"), "3.2 kg", 0},
		{"unit, none", quantity(3.2, "km"), "3.2", 0},
		{"unit, other power", quantity(3.2, "km"), "3.2 km²", 0},
		{"unit, per another", quantity(3.2, "km"), "3.2 km/h", 0},
		{"unit, the last fitting one", quantity(5, "kg"), "4 kg, no: 5 kg (in 3 bags)", 1},
		{"unit, typeset", quantity(3.2, "km"), `$3.2\,\text{km}$`, 1},
		{"unit, range", quantity(5, "h"), "3-5 hours", 1},
		{"unit, hyphen", quantity(5, "km"), "a 5-km run", 1},
		{"unit, miles", quantity(1, "mile"), "1609.344 metres", 1},
		{"unit, time", quantity(90, "min"), "1.5 hours", 1},
		{"unit, data", quantity(1.5, "GiB"), "1536 MiB", 1},
		{"unit, data in any case", quantity(2, "MB"), "2000 kb", 1},
		{"unit, ambiguous case", quantity(2, "MW"), "2 mw", 0},
		{"unit, bits", quantity(1, "MB"), "8 Mbit", 1},
		{"unit, temperature", quantity(0, "°C"), "It is 32 °F", 1},
		{"unit, energy", quantity(3.6, "MJ"), "1 kilowatt-hour or 1 kWh", 1},
		{"unit, percent", quantity(50, "%"), `50\%`, 1},
		{"unit, percent in words", quantity(50, "percent"), "50 per cent", 1},
		{"unit, currency before", quantity(1250, "$"), "It costs $1,250.", 1},
		{"unit, currency code", quantity(1250, "USD"), "USD 1,250", 1},
		{"unit, negative currency", quantity(-5, "USD"), "a change of -$5", 1},
		{"unit, another currency", quantity(5, "€"), "$5", 0},
		{"unit, millions", quantity(3.2e6, "$"), "$3.2 million", 1},
		{"unit, cents", quantity(5, "dollars"), "500 cents", 1},
		{"unit, pounds of money", quantity(5, "pounds"), "£5", 1},
		{"unit, pounds of weight", quantity(1, "pounds"), "0.45359237 kg", 1},
		{"unit of its own", quantity(5, "apples"), "5 apples and 3 pears", 1},
		{"unit of its own, one", quantity(1, "apples"), "1 apple", 1},
		{"unit of its own, a longer word", quantity(5, "app"), "5 apples", 0},
		{"unit of its own, none", quantity(5, "m^2"), "5 m^2, which are 50000 cm", 1},
		{"relative", episode.Check{Number: &ten, Relative: 0.01}, "10.09", 1},
		{"relative, outside", episode.Check{Number: &ten, Relative: 0.01}, "10.11", 0},
		{"relative or absolute", episode.Check{Number: &ten, Relative: 0.01, Tolerance: 1}, "10.9", 1},

		{"json, whole", fields(`{"a": 1}`), `{"a": 1.0}`, 1},
		{"json, in a block", fields(`{"a": 1}`), "So:\n```json\n{\"a\": 1}\n```\nas {asked}.", 1},
		{"json, the last block", fields(`{"a": 1}`), "```\n{\"a\": 2}\n```\nno:\n```\n{\"a\": 1}\n```", 1},
		{"json, in a text", fields(`{"a": 1}`), `It is {x} or {"a": 2}, and then {"a": 1} [really`, 1},
		{"json, nowhere", fields(`{"a": 1}`), "a is 1", 0},
		{"json, other value", fields(`{"a": 1}`), `{"a": "1"}`, 0},
		{"json, missing", fields(`{"a": null}`), `{}`, 0},
		{"json, null", fields(`{"a": null}`), `{"a": null}`, 1},
		{"json, a path", fields(`{"items.1.price": 3, "/items/0/a.b": [true]}`), `{"items": [{"a.b": [true]}, {"price": 3e0}]}`, 1},
		{"json, everything", fields(`{"": {"b": [1, 2]}}`), `{"b": [1.0, 20e-1]}`, 1},
		{"json, more than everything", fields(`{"": {"b": 1}}`), `{"b": 1, "c": 2}`, 0},
		{"json, great integers differ", fields(`{"a": 9007199254740993}`), `{"a": 9007199254740992}`, 0},
		{"json, out of range", fields(`{"a": 1}`), `{"a": 1, "b": 1e999999999}`, 0},
		{"json, many beginnings", fields(`{"a": 1}`), strings.Repeat("[", 1<<20), 0},
		{"json, schema", schema(`{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}}`), `{"n": 2}`, 1},
		{"json, not as its schema", schema(`{"type": "object", "required": ["n"]}`), `{"m": 2}`, 0},
		{"json, schema that refers to itself", schema(`{"properties": {"next": {"$ref": "#"}}, "required": ["next"]}`), `{"next": {"next": 1}}`, 1},

		{"similar", like("kitten sits", "", 0.8), "kitten sitz", 1},
		{"similar, not enough", like("kitten", "", 0.8), "sitting", 0},
		{"similar, alike", like("The cat.", "f1", 0), "a cat", 1},
		{"similar, half", like("one two", "f1", 0), "two three", 0.5},
		{"similar, order", like("a1 b1 c1 d1", "rouge_l", 0), "b1 a1 c1 d1", 0.75},
		{"similar, nothing", like("abc", "", 0), "", 0},
		{"similar, much more than asked for", like("ab", "", 0), strings.Repeat("ab", 100_000), 0.00001},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rewards, mean, err := reward.Verify(t.Context(), []episode.Check{tt.check}, subject(t, nil, tt.answer))
			if err != nil || mean-tt.want > 1e-12 || tt.want-mean > 1e-12 {
				t.Errorf("Verify = %v, %v, %v, want %v", rewards, mean, err, tt.want)
			}
		})
	}
}

// FuzzAnswers has strangers' texts parsed: whatever they are, there is a verdict.
func FuzzAnswers(f *testing.F) {
	f.Add("so 3,200.5 m or $5 million", "km", `{"a": 1}`)
	f.Add("[{\"a\": 1e9}, ```json\n[1]\n```", "°C", `{"/0/a": 1e400}`)
	f.Fuzz(func(t *testing.T, answer, unit, places string) {
		n := 3.2
		checks := []episode.Check{{Number: &n, Unit: unit}, {JSON: &episode.JSONCheck{Schema: json.RawMessage(`{"minimum": 1, "uniqueItems": true}`)}}}
		var equal map[string]json.RawMessage
		if json.Unmarshal([]byte(places), &equal) == nil && equal != nil {
			checks = append(checks, episode.Check{JSON: &episode.JSONCheck{Equal: equal}})
		}
		for _, measure := range []string{"levenshtein", "f1", "rouge_l"} {
			checks = append(checks, episode.Check{Likeness: episode.Likeness{Similar: "a" + places, Measure: measure}})
		}
		rewards, mean, err := reward.Verify(t.Context(), checks, reward.Subject{Answer: answer})
		if err != nil || mean < 0 || mean > 1 {
			t.Errorf("Verify = %v, %v, %v", rewards, mean, err)
		}
	})
}
