package reward

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unit is what one of it is in the base unit of its dimension, and where its zero lies there.
type unit struct{ factor, zero float64 }

// dimension has the units that convert to one another, by their names.
type dimension map[string]unit

// dimensions are tried in this order for the unit of a check; that of an answer is looked for in the same one.
var dimensions = []dimension{
	metric("m metre meter", 1).and(dimension{
		"in": {0.0254, 0}, "inch": {0.0254, 0}, "inches": {0.0254, 0}, "ft": {0.3048, 0}, "foot": {0.3048, 0}, "feet": {0.3048, 0},
		"yd": {0.9144, 0}, "yard": {0.9144, 0}, "mi": {1609.344, 0}, "mile": {1609.344, 0}, "nautical mile": {1852, 0}, "nmi": {1852, 0},
	}),
	metric("g gram gramme", 1e-3).and(dimension{
		"t": {1e3, 0}, "tonne": {1e3, 0}, "oz": {0.028349523125, 0}, "ounce": {0.028349523125, 0},
		"lb": {0.45359237, 0}, "lbs": {0.45359237, 0}, "pound": {0.45359237, 0},
	}),
	metric("s second", 1).and(dimension{
		"sec": {1, 0}, "min": {60, 0}, "minute": {60, 0}, "h": {3600, 0}, "hr": {3600, 0}, "hour": {3600, 0},
		"d": {86400, 0}, "day": {86400, 0}, "week": {604800, 0},
	}),
	prefixed(large, "B byte", 1).and(prefixed(large, "bit", 0.125)).and(dimension{ // Mb is written for both, and is megabytes here
		"KiB": {1 << 10, 0}, "MiB": {1 << 20, 0}, "GiB": {1 << 30, 0}, "TiB": {1 << 40, 0},
		"kibibyte": {1 << 10, 0}, "mebibyte": {1 << 20, 0}, "gibibyte": {1 << 30, 0}, "tebibyte": {1 << 40, 0},
	}),
	metric("L litre liter", 1).and(metric("l", 1)),
	metric("W watt", 1), metric("J joule", 1).and(metric("Wh", 3600)), metric("V volt", 1), metric("A ampere amp", 1),
	metric("N newton", 1), metric("Pa pascal", 1).and(dimension{"bar": {1e5, 0}, "mbar": {100, 0}, "atm": {101325, 0}}), metric("Hz hertz", 1),
	{"m/s": {1, 0}, "km/h": {1 / 3.6, 0}, "kmh": {1 / 3.6, 0}, "kph": {1 / 3.6, 0}, "mph": {0.44704, 0}},
	{"K": {1, 0}, "kelvin": {1, 0}, "°C": {1, 273.15}, "celsius": {1, 273.15}, "degrees celsius": {1, 273.15}, "°F": {5.0 / 9, 459.67 * 5 / 9},
		"fahrenheit": {5.0 / 9, 459.67 * 5 / 9}, "degrees fahrenheit": {5.0 / 9, 459.67 * 5 / 9}},
	{"%": {0.01, 0}, "percent": {0.01, 0}, "per cent": {0.01, 0}, "‰": {0.001, 0}},
	{"$": {1, 0}, "USD": {1, 0}, "US$": {1, 0}, "dollar": {1, 0}, "¢": {0.01, 0}, "cent": {0.01, 0}},
	{"€": {1, 0}, "EUR": {1, 0}, "euro": {1, 0}}, {"£": {1, 0}, "GBP": {1, 0}, "pound": {1, 0}},
	{"¥": {1, 0}, "JPY": {1, 0}, "yen": {1, 0}}, {"₹": {1, 0}, "INR": {1, 0}, "rupee": {1, 0}},
}

// prefix is one of the SI, as a symbol and as a name.
type prefix struct {
	symbol, name string
	factor       float64
}

var (
	large = []prefix{{"", "", 1}, {"k", "kilo", 1e3}, {"M", "mega", 1e6}, {"G", "giga", 1e9}, {"T", "tera", 1e12}, {"P", "peta", 1e15}}
	all   = append(large, prefix{"h", "hecto", 100}, prefix{"d", "deci", 0.1}, prefix{"c", "centi", 0.01}, prefix{"m", "milli", 1e-3},
		prefix{"µ", "micro", 1e-6}, prefix{"μ", "micro", 1e-6}, prefix{"u", "micro", 1e-6}, prefix{"n", "nano", 1e-9})
)

func metric(names string, factor float64) dimension { return prefixed(all, names, factor) }

// prefixed has a unit with prefixes. The first of its names is its symbol.
func prefixed(prefixes []prefix, names string, factor float64) dimension {
	d := dimension{}
	for i, name := range strings.Fields(names) {
		for _, p := range prefixes {
			if i == 0 {
				d[p.symbol+name] = unit{factor * p.factor, 0}
			}
			if i > 0 || len(name) > 2 {
				d[p.name+name] = unit{factor * p.factor, 0}
			}
		}
	}
	return d
}

func (d dimension) and(other dimension) dimension {
	for name, unit := range other {
		d[name] = unit
	}
	return d
}

// find is a unit by its name: as it is written, or else in any case and in the plural, if that means one unit alone.
func (d dimension) find(name string) (found unit, ok bool) {
	if found, ok = d[name]; ok {
		return found, true
	}
	for known, unit := range d {
		if !strings.EqualFold(known, name) && !(len(known) > 1 && strings.EqualFold(known+"s", name)) {
			continue
		}
		if ok && unit != found {
			return unit, false
		}
		found, ok = unit, true
	}
	return found, ok
}

var (
	scaled = regexp.MustCompile(`(?i)^[ *_-]*(thousand|million|billion|trillion)\b`)
	// unitBehind and unitBefore are words or signs beside a number. What comes between may be marks of Markdown.
	unitBehind = regexp.MustCompile(`^[ *_]*([°%‰\p{Sc}µμ]?\pL*(?:[/^][\pL\d]+)*)(?: (\pL+))?`)
	unitBefore = regexp.MustCompile(`(-?)((?:\b[A-Za-z]{2,3})?\p{Sc}|\b[A-Z]{3})[ *_]*$`)
)

var scales = map[string]float64{"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}

// wanted is the unit of a check: what it is in each dimension that has it.
type wanted struct {
	name string
	in   []dimension
	to   []unit
}

func want(name string) wanted {
	w := wanted{name: powers.Replace(name)}
	for _, d := range dimensions {
		if to, known := d.find(name); known {
			w.in, w.to = append(w.in, d), append(w.to, to)
		}
	}
	return w
}

// convert gives a number that stands between two texts in the unit. It has none that fits if neither text names one.
func (w wanted) convert(n float64, before, behind string) (in float64, fits bool) {
	if scale := scaled.FindStringSubmatch(behind); scale != nil {
		n, behind = n*scales[strings.ToLower(scale[1])], behind[len(scale[0]):]
	}
	behind = powers.Replace(behind[:min(len(behind), 64)])
	for i, d := range w.in {
		from, fits := d.beside(behind)
		if sign := unitBefore.FindStringSubmatch(before[max(0, len(before)-16):]); !fits && sign != nil {
			if from, fits = d.find(sign[2]); fits && sign[1] == "-" {
				n = -n
			}
		}
		if fits {
			return (n*from.factor + from.zero - w.to[i].zero) / w.to[i].factor, true
		}
	}
	return n, len(w.in) == 0 && begins(behind, w.name)
}

// powers are written alike on both sides, and so are hyphens between a number, its unit and what it is of.
var powers = strings.NewReplacer("²", "^2", "³", "^3", "-", " ")

// beside is the unit at the beginning of a text.
func (d dimension) beside(text string) (unit, bool) {
	words := unitBehind.FindStringSubmatch(text)
	if words[1] == "" {
		return unit{}, false
	}
	if two, ok := d.find(words[1] + " " + words[2]); ok {
		return two, true
	}
	return d.find(words[1])
}

// begins reports whether a text begins with a unit that is none of ours, in the singular or in the plural.
func begins(text, unit string) bool {
	text, unit = strings.ToLower(strings.TrimLeft(text, " *_")), strings.ToLower(unit)
	if len(unit) > 2 {
		unit = strings.TrimSuffix(unit, "s")
	}
	rest, ok := strings.CutPrefix(text, unit)
	next, _ := utf8.DecodeRuneInString(strings.TrimPrefix(rest, "s"))
	return ok && !unicode.IsLetter(next) && !unicode.IsDigit(next) && !strings.ContainsRune("/^", next)
}
