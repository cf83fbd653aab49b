package sites

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// forms has two dozen forms. What was sent is in its state when it passed the form's checks.
type forms struct {
	base
	Submitted map[string]map[string]any `json:"submitted"` // by form: a text, a list of texts, or a file
	Refused   map[string]int            `json:"refused"`   // by form, how often something was wrong
	drafts    map[string]url.Values     // what earlier steps of a form got
}

// form is a form in one step or several.
type form struct {
	Name, Title, Text string
	Steps             [][]input
	Confirm           string                  // asked in a dialog of the browser before it is sent
	check             func(url.Values) string // what is wrong with the fields together
}

// input is a field. Type is an HTML input type, or textarea, select, multiple, editable, ranking.
type input struct {
	Name, Label, Type string
	Value, Hint       string
	Min, Max, Step    string
	Options           []string
	Of                map[string]string // of a select: which value of the field before it an option goes with
	Optional          bool
	pattern, wrong    string
	Tab               string // where fields are in tabs
	Filter, Needed,
	Only bool // a list that a search box filters; without which the button is off; shown in a dialog of the page
}

// classes are those of cars.
var classes = map[string]string{"Wren": "Small", "Finch": "Small", "Heron": "Family", "Stork": "Family", "Auk": "Van",
	"Pelican": "Van"}

var allForms = []form{
	{Name: "contact", Title: "Contact us", Text: "We answer within two days.", Steps: one(
		input{Name: "name", Label: "Your name", Type: "text"}, input{Name: "email", Label: "E-mail", Type: "email"},
		input{Name: "message", Label: "Message", Type: "textarea"})},
	{Name: "password", Title: "Choose a password", Text: "Ten characters at least, and one of them a digit.", Steps: one(
		input{Name: "password", Label: "New password", Type: "password", pattern: `^.*\d.*$`, wrong: "It has no digit."},
		input{Name: "again", Label: "Repeat it", Type: "password"}), check: samePasswords},
	{Name: "age", Title: "Your age", Text: "You must be of age.", Steps: one(
		input{Name: "age", Label: "Age in years", Type: "number", Min: "18", Max: "120"})},
	{Name: "volume", Title: "Loudness", Text: "In steps of five.", Steps: one(
		input{Name: "volume", Label: "Volume", Type: "range", Min: "0", Max: "100", Step: "5", Value: "50"})},
	{Name: "stay", Title: "Book a stay", Text: "Rooms are free in all of May 2027, for 14 nights at most.", Steps: one(
		input{Name: "arrival", Label: "Arrival", Type: "date", Min: "2027-05-01", Max: "2027-05-31"},
		input{Name: "departure", Label: "Departure", Type: "date", Min: "2027-05-02", Max: "2027-06-01"},
		input{Name: "guests", Label: "Guests", Type: "select", Options: []string{"1", "2", "3", "4"}}), check: nights},
	{Name: "alarm", Title: "Set the alarm", Text: "At night it is quiet here: between 06:00 and 22:00.", Steps: one(
		input{Name: "time", Label: "Time", Type: "time", Min: "06:00", Max: "22:00"})},
	{Name: "meeting", Title: "Plan a meeting", Text: "Give the beginning.", Steps: one(
		input{Name: "begins", Label: "Begins", Type: "datetime-local"}, input{Name: "topic", Label: "Topic", Type: "text"})},
	{Name: "statement", Title: "Order a statement", Text: "For a month since 2025.", Steps: one(
		input{Name: "month", Label: "Month", Type: "month", Min: "2025-01"})},
	{Name: "shift", Title: "Ask for a shift", Text: "By calendar week.", Steps: one(
		input{Name: "week", Label: "Week", Type: "week"},
		input{Name: "shift", Label: "Shift", Type: "radio", Options: []string{"Early", "Late", "Night"}})},
	{Name: "paint", Title: "Mix a paint", Text: "Any colour that a screen can show.", Steps: one(
		input{Name: "color", Label: "Colour", Type: "color", Value: "#ffffff"})},
	{Name: "pizza", Title: "Your pizza", Text: "Up to three toppings.", Steps: one(
		input{Name: "size", Label: "Size", Type: "radio", Options: []string{"Small", "Medium", "Large"}},
		input{Name: "toppings", Label: "Toppings", Type: "checkbox", Options: []string{"Olives", "Mushrooms", "Onions",
			"Spinach", "Capers", "Chilli"}, Optional: true}),
		check: threeToppings},
	{Name: "country", Title: "Where you live", Text: "For the postage.", Steps: one(
		input{Name: "country", Label: "Country", Type: "select", Options: []string{"Austria", "Belgium", "Denmark", "Estonia",
			"Finland", "Greece", "Hungary", "Iceland", "Norway", "Portugal"}})},
	{Name: "languages", Title: "Languages", Text: "Those that you speak.", Steps: one(
		input{Name: "languages", Label: "Languages", Type: "multiple", Options: []string{"Danish", "English", "French",
			"German", "Hindi", "Polish", "Swahili", "Turkish"}})},
	{Name: "station", Title: "Your station", Text: "Type some letters, or another station.", Steps: one(
		input{Name: "station", Label: "Station", Type: "text", Options: []string{"Central", "Harbour", "Old Mill", "University",
			"Zoo"}})},
	{Name: "phone", Title: "Telephone", Text: "With the country code, as in +49 30 123456.", Steps: one(
		input{Name: "phone", Label: "Number", Type: "tel", pattern: `^\+\d{1,3}( ?\d+)+$`,
			wrong: "Please begin with + and the country code."})},
	{Name: "homepage", Title: "Your homepage", Text: "With https, please.", Steps: one(
		input{Name: "url", Label: "Address", Type: "url", pattern: `^https://[^\s/]+\.[^\s]+$`,
			wrong: "That is not an address with https."})},
	{Name: "document", Title: "Send a document", Text: "A text file of 100 kB at most.", Steps: one(
		input{Name: "file", Label: "File", Type: "file"}, input{Name: "note", Label: "Note", Type: "text", Optional: true})},
	{Name: "membership", Title: "Become a member", Text: "In three steps.", Steps: [][]input{
		{{Name: "name", Label: "Name", Type: "text"}, {Name: "born", Label: "Date of birth", Type: "date", Max: "2010-01-01"}},
		{{Name: "street", Label: "Street", Type: "text"}, {Name: "postcode", Label: "Postcode", Type: "text",
			pattern: `^\d{5}$`, wrong: "A postcode has five digits."}, {Name: "city", Label: "City", Type: "text"}},
		{{Name: "plan", Label: "Plan", Type: "radio", Options: []string{"Monthly", "Yearly"}}, {Name: "newsletter",
			Label: "Newsletter", Type: "checkbox", Options: []string{"Yes, please"}, Optional: true}}}},
	{Name: "car", Title: "Rent a car", Text: "The model depends on the class.", Steps: one(
		input{Name: "class", Label: "Class", Type: "select", Options: []string{"Small", "Family", "Van"}},
		input{Name: "model", Label: "Model", Type: "select", Options: []string{"Wren", "Finch", "Heron", "Stork", "Auk",
			"Pelican"}, Of: classes}), check: modelOfClass},
	{Name: "note", Title: "Leave a note", Text: "Write into the box.", Steps: one(
		input{Name: "note", Label: "Note", Type: "editable"})},
	{Name: "profile", Title: "Your profile", Text: "There are three tabs.", Steps: one(
		input{Name: "nick", Label: "Nickname", Type: "text", Tab: "Name"}, input{Name: "town", Label: "Town", Type: "text",
			Tab: "Place"},
		input{Name: "motto", Label: "Motto", Type: "textarea", Tab: "Words"})},
	{Name: "close", Title: "Close your account", Text: "There is no way back.", Confirm: "Close the account for good?",
		Steps: one(
			input{Name: "reason", Label: "Reason", Type: "select", Options: []string{"Too dear", "Too slow", "Another reason"}})},
	{Name: "ranking", Title: "Rank the fruit", Text: "The best one first.", Steps: one(
		input{Name: "order", Label: "Your order", Type: "ranking", Options: []string{"Apple", "Banana", "Cherry", "Date"}})},
	{Name: "terms", Title: "Accept the terms", Text: "The button is off until you did. The terms are in a window of the page.",
		Steps: one(
			input{Name: "accept", Label: "Terms", Type: "checkbox", Options: []string{"I have read the terms"}, Needed: true,
				Only: true},
			input{Name: "city", Label: "Place", Type: "radio", Filter: true, Options: []string{"Aarhus", "Bergen", "Cork",
				"Dresden", "Essen", "Faro", "Ghent", "Huelva", "Izmir", "Jena"}})},
}

func one(fields ...input) [][]input { return [][]input{fields} }

func samePasswords(v url.Values) string {
	if v.Get("password") != v.Get("again") || len(v.Get("password")) < 10 {
		return "The passwords differ, or have fewer than ten characters."
	}
	return ""
}

func nights(v url.Values) string {
	day := func(date string) int { // of May; June begins with 32
		n, _ := strconv.Atoi(date[len(date)-2:])
		if strings.HasPrefix(date, "2027-06") {
			n += 31
		}
		return n
	}
	if n := day(v.Get("departure")) - day(v.Get("arrival")); n < 1 || n > 14 {
		return "A stay has 1 to 14 nights."
	}
	return ""
}

func threeToppings(v url.Values) string {
	if len(v["toppings"]) > 3 {
		return "Three toppings at most, please."
	}
	return ""
}

func modelOfClass(v url.Values) string {
	if classes[v.Get("model")] != v.Get("class") {
		return "This model is of another class."
	}
	return ""
}

func openForms(seed uint64) world {
	f := &forms{base: newBase("forms", seed), Submitted: map[string]map[string]any{}, Refused: map[string]int{},
		drafts: map[string]url.Values{}}
	listed := slices.Clone(allForms)
	f.rand.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
	f.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { f.show(w, r, 200, "home", "Forms", listed) })
	f.HandleFunc("GET /form/{name}", f.form)
	f.HandleFunc("POST /form/{name}", f.send)
	f.serve()
	return f
}

func (f *forms) state() any { return f }

// asked is the form and the step that a request is about; nil where there is none.
func asked(r *http.Request) (*form, int) {
	step, _ := strconv.Atoi(r.FormValue("step"))
	at := slices.IndexFunc(allForms, func(f form) bool { return f.Name == r.PathValue("name") })
	if at < 0 || step < 0 || step >= len(allForms[at].Steps) {
		return nil, 0
	}
	return &allForms[at], step
}

// formView is what the page of a form gets.
type formView struct {
	*form
	Step, Back int
	Fields     []input
	Values     url.Values
	Wrong      map[string]string
	Error      string
	Tabs       []string
	File       bool
}

func (v formView) Value(in input) string {
	if in.Type == "password" || in.Type == "file" {
		return ""
	}
	if got, ok := v.Values[in.Name]; ok && len(got) > 0 {
		return got[0]
	}
	return in.Value
}

func (v formView) Has(name, value string) bool { return slices.Contains(v.Values[name], value) }

func (f *forms) page(w http.ResponseWriter, r *http.Request, status int, about *form, step int, values url.Values,
	wrong map[string]string, problem string) {
	v := formView{form: about, Step: step, Back: step - 1, Fields: about.Steps[step], Values: values, Wrong: wrong,
		Error: problem}
	for _, in := range v.Fields {
		if in.Tab != "" {
			v.Tabs = append(v.Tabs, in.Tab)
		}
		v.File = v.File || in.Type == "file"
	}
	f.show(w, r, status, "form", about.Title, v)
}

func (f *forms) form(w http.ResponseWriter, r *http.Request) {
	about, step := asked(r)
	if about == nil {
		f.show(w, r, http.StatusNotFound, "missing", "Page not found", r.URL.Path)
		return
	}
	f.page(w, r, 200, about, step, f.drafts[about.Name], nil, "")
}

func (f *forms) send(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseMultipartForm(maxBody)
	about, step := asked(r)
	if about == nil {
		f.show(w, r, http.StatusNotFound, "missing", "Page not found", r.URL.Path)
		return
	}
	values := url.Values{}
	for name, value := range f.drafts[about.Name] {
		values[name] = value
	}
	wrong, kept := map[string]string{}, map[string]any{}
	for _, in := range about.Steps[step] {
		if in.Type == "file" {
			kept[in.Name], wrong[in.Name] = upload(r, in.Name)
		} else {
			values[in.Name] = nil
			for _, value := range r.PostForm[in.Name][:min(len(r.PostForm[in.Name]), 20)] {
				values[in.Name] = append(values[in.Name], clip(value, 2000))
			}
			wrong[in.Name] = in.judge(values[in.Name])
		}
		if wrong[in.Name] == "" {
			delete(wrong, in.Name)
		}
	}
	problem := ""
	if len(wrong) > 0 {
		problem = "Please look at the fields that are marked."
	} else if about.check != nil {
		problem = about.check(values)
	}
	if problem != "" {
		f.Refused[about.Name]++
		f.page(w, r, http.StatusUnprocessableEntity, about, step, values, wrong, problem)
		return
	}
	if f.drafts[about.Name] = values; step+1 < len(about.Steps) {
		http.Redirect(w, r, fmt.Sprintf("/form/%s?step=%d", about.Name, step+1), http.StatusSeeOther)
		return
	}
	for _, fields := range about.Steps {
		for _, in := range fields {
			got := values[in.Name]
			switch {
			case in.Type == "file":
			case in.Type == "multiple" || in.Type == "checkbox":
				kept[in.Name] = append([]string{}, got...)
			case len(got) > 0:
				kept[in.Name] = strings.ReplaceAll(got[0], "\r\n", "\n")
			default:
				kept[in.Name] = "" // no step of it was sent
			}
		}
	}
	delete(f.drafts, about.Name)
	f.Submitted[about.Name] = kept
	f.show(w, r, 200, "thanks", "Thank you", about)
}

// upload takes a text file.
func upload(r *http.Request, name string) (file any, wrong string) {
	opened, header, err := r.FormFile(name)
	if err != nil {
		return nil, "Please choose a file."
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, 100_001))
	if err != nil || len(data) > 100_000 {
		return nil, "The file is larger than 100 kB."
	}
	sum := sha256.Sum256(data)
	return map[string]any{
		"name": short(header.Filename), "bytes": len(data), "sha256": hex.EncodeToString(sum[:]), "begins": short(string(data)),
	}, ""
}

// shapes are what values of some types look like.
var shapes = map[string]*regexp.Regexp{
	"number": regexp.MustCompile(`^-?\d+$`), "range": regexp.MustCompile(`^\d+$`),
	"date": regexp.MustCompile(`^\d{4}-\d\d-\d\d$`),
	"time": regexp.MustCompile(`^\d\d:\d\d$`), "datetime-local": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d$`),
	"month": regexp.MustCompile(`^\d{4}-\d\d$`), "week": regexp.MustCompile(`^\d{4}-W\d\d$`),
	"color": regexp.MustCompile(`^#[0-9a-f]{6}$`),
}

// judge says what is wrong with the values of a field; "" for nothing.
func (in input) judge(values []string) string {
	if len(values) == 0 || strings.TrimSpace(values[0]) == "" {
		if in.Optional {
			return ""
		}
		return "Please fill this in."
	}
	for _, value := range values {
		closed := in.Type == "select" || in.Type == "multiple" || in.Type == "radio" || in.Type == "checkbox"
		shape := shapes[in.Type]
		switch {
		case closed && !slices.Contains(in.Options, value):
			return "That is not one of the choices."
		case shape != nil && !shape.MatchString(value):
			return "That cannot be read."
		case in.pattern != "" && !regexp.MustCompile(in.pattern).MatchString(value):
			return in.wrong
		case in.Type == "email":
			if address, err := mail.ParseAddress(value); err != nil || address.Address != value {
				return "That is not an e-mail address."
			}
		case shape != nil && !in.within(value):
			return fmt.Sprintf("It must be from %s to %s.", in.Min, in.Max)
		}
	}
	return ""
}

// within compares with the limits: as numbers, or as texts of equal length.
func (in input) within(value string) bool {
	if in.Type != "number" && in.Type != "range" {
		return value >= in.Min && (in.Max == "" || value <= in.Max)
	}
	n, err := strconv.Atoi(value)
	least, _ := strconv.Atoi(in.Min)
	most, _ := strconv.Atoi(in.Max)
	step, _ := strconv.Atoi(in.Step)
	return err == nil && n >= least && n <= most && (step == 0 || n%step == 0)
}
