package policy

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// decoded undoes an encoding when the text is there.
func (c *call) decoded(known bool) stream {
	out := stream{text: unknown, set: true, taint: c.in.taint | decoded}
	decodes := c.flag("dDr", "decode", "decompress", "uncompress", "decrypt") || c.has("-base64") ||
		slices.Contains([]string{"gunzip", "zcat", "bunzip2", "bzcat", "xzcat", "unxz", "zstdcat", "uudecode"}, c.name)
	if !decodes {
		out.taint = c.in.taint
		return out
	}
	in := c.in
	for _, name := range c.operands("wscl") {
		if content, ok := c.j.files[c.j.canonical(name)]; ok {
			in, known = content, !strings.Contains(content.text, unknown)
		}
	}
	if !known {
		return out
	}
	plain := strings.Join(strings.Fields(in.text), "")
	var data []byte
	var err error
	switch c.name {
	case "base64", "openssl":
		data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(plain, "="))
	case "base32":
		data, err = base32.StdEncoding.DecodeString(plain)
	case "xxd":
		data, err = hex.DecodeString(plain)
	default:
		return out
	}
	if err == nil || len(data) > 0 {
		out.text = clean(string(data))
	}
	return out
}

func reversed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		runes := []rune(line)
		slices.Reverse(runes)
		lines[i] = string(runes)
	}
	return strings.Join(lines, "\n")
}

// translated is what tr makes of its input.
func (c *call) translated() string {
	sets := c.operands("")
	if c.flag("cCs") || len(sets) == 0 {
		return unknown
	}
	from := trSet(sets[0])
	if c.flag("d") {
		return strings.Map(func(r rune) rune {
			if slices.Contains(from, r) {
				return -1
			}
			return r
		}, c.in.text)
	}
	if len(sets) < 2 {
		return unknown
	}
	to := trSet(sets[1])
	if len(to) == 0 {
		return unknown
	}
	return strings.Map(func(r rune) rune {
		if i := slices.Index(from, r); i >= 0 {
			return to[min(i, len(to)-1)]
		}
		return r
	}, c.in.text)
}

// trSet spells a set of characters out.
func trSet(set string) []rune {
	switch set {
	case "[:upper:]":
		set = "A-Z"
	case "[:lower:]":
		set = "a-z"
	case "[:space:]":
		return []rune(" \t\n\r\v\f")
	}
	runes := []rune(clean(ansiC(set)))
	var all []rune
	for i := 0; i < len(runes); i++ {
		if i+2 < len(runes) && runes[i+1] == '-' && runes[i+2] >= runes[i] && runes[i+2]-runes[i] < 256 {
			for r := runes[i]; r <= runes[i+2]; r++ {
				all = append(all, r)
			}
			i += 2
			continue
		}
		all = append(all, runes[i])
	}
	return all
}
