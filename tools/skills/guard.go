package skills

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"trajgen/tools/threats"
)

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
)

// Finding is something in a skill that could do harm.
type Finding struct {
	Family   string   `json:"family"`
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Text     string   `json:"text"` // what matched, shortened
	Decoded  string   `json:"decoded,omitempty"`
}

func (f Finding) String() string {
	hidden := ""
	if f.Decoded != "" {
		hidden = " in " + f.Decoded
	}
	return fmt.Sprintf("%s: %s, %s/%s%s: %q", f.File, f.Severity, f.Family, f.Rule, hidden, f.Text)
}

// The verdicts of the guard. It is a filter that finds what others have tried; the sandbox is the wall.
const (
	Safe      = "safe"
	Caution   = "caution"   // something of high severity was found
	Dangerous = "dangerous" // something critical was found
)

// Report is what the guard says of a skill.
type Report struct {
	Verdict  string    `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// Scan looks through all files of a skill, as they are and decoded.
func Scan(s *Skill) Report {
	report := Report{Verdict: Safe, Findings: []Finding{}}
	for _, name := range s.Paths() {
		for _, f := range scanFile(name, s.Files[name]) {
			known := slices.ContainsFunc(report.Findings, func(g Finding) bool { return g.File == f.File && g.Rule == f.Rule })
			if !known {
				report.Findings = append(report.Findings, f)
			}
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
	if len(report.Findings) > 0 {
		switch report.Findings[0].Severity {
		case Critical:
			report.Verdict = Dangerous
		case High:
			report.Verdict = Caution
		}
	}
	return report
}

var severities = []Severity{Critical, High, Medium, Low}

func scanFile(name string, data []byte) (found []Finding) {
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	prose := slices.Contains([]string{".md", ".txt", ".rst", ".html", ""}, strings.ToLower(path.Ext(name)))
	if r, ok := threats.Invisible(strings.TrimPrefix(text, "\uFEFF")); ok && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		found = append(found, Finding{"injection", "invisible_character", High, name, fmt.Sprintf("%U", r), ""})
	}
	for _, reading := range readings(text) {
		plain := norm.NFKC.String(reading.text)
		for _, m := range rules.compiled.Find(reading.text) {
			rule := rules.byID[m.ID]
			f := Finding{rule.family, m.ID, rule.severity, name, m.Text, reading.how}
			if prose && reading.how == "" && (f.Severity == Critical || f.Severity == High) && quotes(plain, m) {
				f.Severity = Medium
			}
			found = append(found, f)
		}
	}
	return found
}

// reading is a text that a file means, and how it is hidden there.
type reading struct{ text, how string }

var (
	base64Text  = regexp.MustCompile(`[A-Za-z0-9+/]{16,}={0,2}`)
	hexText     = regexp.MustCompile(`(?:[0-9a-fA-F]{2}){8,}`)
	escapedText = regexp.MustCompile(`(?:\\x[0-9a-fA-F]{2}){2,}`)
	percentText = regexp.MustCompile(`(?:%[0-9a-fA-F]{2})`)
)

// most that is decoded of a file.
const maxDecoded = 200

func readings(text string) []reading {
	all := []reading{{text, ""}}
	seen := map[string]bool{text: true}
	add := func(text, how string) {
		if !seen[text] && len(all) < maxDecoded {
			seen[text] = true
			all = append(all, reading{text, how})
		}
	}
	visible := strings.Map(func(r rune) rune {
		if r >= 0xE0020 && r <= 0xE007E { // tag characters repeat the letters of ASCII unseen
			return r - 0xE0000
		}
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, text)
	add(visible, "invisible characters")
	decode := func(find *regexp.Regexp, how string, decode func(string) ([]byte, error)) {
		for _, match := range find.FindAllString(text, maxDecoded) {
			if plain, err := decode(match); err == nil && printable(plain) {
				add(string(plain), how)
			}
		}
	}
	decode(base64Text, "base64", func(s string) ([]byte, error) {
		return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	})
	decode(hexText, "hex", hex.DecodeString)
	add(escapedText.ReplaceAllStringFunc(text, func(s string) string {
		plain, _ := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
		return string(plain)
	}), "escapes")
	add(percentText.ReplaceAllStringFunc(text, func(s string) string {
		plain, _ := url.PathUnescape(s)
		return strings.ToValidUTF8(plain, "\uFFFD")
	}), "percent escapes")
	return all
}

func printable(data []byte) bool {
	hidden := func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }
	return len(data) > 0 && utf8.Valid(data) && !bytes.ContainsFunc(data, hidden)
}

// quotes says whether a match in a text for people is an example that the text warns of: it stands in quotes, and words of warning
// are near. An attacker can write such words, too: that is why this is a filter.
func quotes(text string, m threats.Match) bool {
	line := strings.LastIndexByte(text[:m.Start], '\n') + 1
	before := text[line:m.Start]
	in := strings.Count(before, "`")%2 == 1 || strings.Count(before, `"`)%2 == 1 || strings.ContainsAny(before, "“>|") ||
		strings.Count(text[:line], "```")%2 == 1
	return in && warning.MatchString(text[max(0, m.Start-400):m.Start])
}

var warning = regexp.MustCompile(`(?i)\b(attack(s|er)?|malicious|exploit|suspicious|vulnerab\w+|phishing|injections?|refuse|reject|flag|detect|look for|` +
	`red flags?|bad:|unsafe|dangerous|never (run|do|write|use)|do not (run|do|write|use)|don't (run|do|write|use))\b`)

// Who a skill comes from.
const (
	Builtin   = "builtin"
	Trusted   = "trusted"   // the makers of models, see trustedOwners, and what a person said to trust
	Community = "community" // everyone else
	Agent     = "agent-created"
)

// What is done about a verdict.
const (
	Allow = "allow"
	Ask   = "ask"
	Block = "block"
)

// Decide is the policy. Force, which a person gives, lets a skill pass that is to be treated with caution, and no dangerous one.
func Decide(trust, verdict string, force bool) string {
	column := slices.Index([]string{Safe, Caution, Dangerous}, verdict)
	decision := map[string][]string{
		Builtin: {Allow, Allow, Allow}, Trusted: {Allow, Allow, Block}, Community: {Allow, Block, Block}, Agent: {Allow, Allow, Ask},
	}[trust][column]
	if force && verdict == Caution {
		return Allow
	}
	return decision
}
