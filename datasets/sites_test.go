package datasets_test

import (
	"encoding/json"
	"strings"
	"testing"

	"trajgen/datasets"
)

func TestSites(t *testing.T) {
	row := `{"prompt": "Buy a tent.", "sites": ["shop:7"], "verify": {"site_state": {"site": "shop", "expect": "len(orders) == 1"}}}`
	task := read(t, write(t, "tasks.jsonl", row), datasets.Options{})[0]
	text, err := json.Marshal(task)
	if err != nil || !strings.Contains(string(text), `"sites":["shop:7"]`) ||
		!strings.Contains(string(text), `"site_state":{"site":"shop","expect":"len(orders) == 1"}`) {
		t.Errorf("%s, %v", text, err)
	}
	plain := read(t, write(t, "tasks.jsonl", `{"prompt": "Buy a tent."}`), datasets.Options{})[0]
	if text, _ := json.Marshal(plain); strings.Contains(string(text), "site") {
		t.Errorf("a task without sites has them: %s", text)
	}
	for rest, want := range map[string]string{
		`"sites": ["shpo"]`:                                            `unknown site "shpo" (have `,
		`"sites": ["shop:x"]`:                                          `the seed of site shop is "x", want a number as in shop:7`,
		`"sites": ["shop", "shop:2"]`:                                  "site shop is there twice",
		`"verify": {"site_state": {"site": "shop"}}`:                   "it needs a site and what to expect of its state",
		`"verify": {"site_state": {"site": "shop", "expect": "true"}}`: `the task has no site "shop"`,
		`"sites": ["shop"], "verify": {"site_state": {"site": "shop", "expect": "len(ordres) == 1"}}`:    "unknown name ordres",
		`"sites": ["shop"], "verify": {"site_state": {"site": "shop", "expect": "len("}}`:                "unexpected token",
		`"sites": ["shop"], "verify": {"site_state": {"site": "shop", "expect": "orders[0].total > 3"}}`: "index out of range",
		`"sites": ["shop"], "verify": {"site_state": {"site": "shop", "expect": "len(products)"}}`:       "is 24, want true, false or a number from 0 to 1",
		`"sites": ["shop"], "verify": {"site_state": {"site": "shop", "expect": "true", "when": 1}}`:     "unknown key (have expect, site)",
		`"sites": ["shop"], "verify": {"site_state": {"site": "shop", "expect": "true"}, "exact": "4"}`:  "are both there, want one of them",
	} {
		if err := refused(t, `{"prompt": "a", `+rest+`}`); !strings.Contains(err, want) {
			t.Errorf("%s: %s, want %s", rest, err, want)
		}
	}
}

// refused is what is wrong with a row.
func refused(t *testing.T, row string) string {
	t.Helper()
	source, err := datasets.Open(write(t, "tasks.jsonl", row), datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range source.Tasks(t.Context()) {
		if err != nil {
			return err.Error()
		}
	}
	return "nothing"
}

// TestStates reads what is expected of a home and of messages, and tries it with what they begin with.
func TestStates(t *testing.T) {
	row := func(more string) string { return `{"prompt": "a", ` + more + `}` }
	for text, want := range map[string]string{
		row(`"verify": {"home_state": "states['lock.front_door'] == 'locked'"}`):                                        "",
		row(`"home": {"light.attic": {"state": "off"}}, "verify": {"home_state": "states['light.attic'] == 'on'"}`):     "",
		row(`"verify": {"home_state": "sates['lock.front_door'] == 'locked'"}`):                                         "home_state: with the state in which the home begins: expect",
		row(`"home": {"light.attic": {"status": "off"}}`):                                                               "want entities, each with state, area or attributes",
		row(`"home": {"Attic": {"state": "off"}, "light.attic": {}}`):                                                   `entity "light.attic": want a name such as light.attic, and a state`,
		row(`"channels": ["signal:+49", "sms:1"], "verify": {"outbox": "len(sent) == 1 and 'signal:+49' in channels"}`): "",
		row(`"verify": {"outbox": "len(send) == 1"}`):                                                                   "outbox: before anything is sent: expect",
		row(`"channels": ["family"]`):                                                                                   `channel "family"; want PLATFORM:ID`,
	} {
		source := open(t, write(t, "tasks.jsonl", text), datasets.Options{})
		var got error
		for _, err := range source.Tasks(t.Context()) {
			got = err
		}
		if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}
