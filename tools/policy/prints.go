package policy

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"path"
	"slices"
	"strings"
)

// printed is what a command prints, where that can be told; it may be put into a command or piped into a shell.
func (c *call) printed() stream {
	out := stream{text: unknown, set: true, taint: c.in.taint}
	known := c.in.set && !strings.Contains(c.in.text, unknown)
	switch c.name {
	case "echo":
		return stream{text: c.echo(), set: true, taint: c.taint}
	case "printf":
		return c.printf()
	case "cat", "tac", "head", "tail", "sort", "uniq", "tee", "less", "more", "nl", "sponge", "pv", "bat":
		return c.passed()
	case "curl", "wget", "fetch", "aria2c", "http", "https", "lynx", "nc", "ncat", "socat", "telnet", "ftp":
		return c.fetched()
	case "pwd":
		out.text = orUnknown(c.j.directory()) + "\n"
	case "which", "type":
		if rest := c.operands(""); len(rest) == 1 {
			out.text = "/usr/bin/" + rest[0] + "\n"
		}
	case "command":
		if len(c.args) == 2 {
			out.text = "/usr/bin/" + c.args[1] + "\n"
		}
	case "basename":
		if rest := c.operands("s"); len(rest) == 1 && !strings.Contains(rest[0], unknown) {
			out.text = path.Base(rest[0]) + "\n"
		}
	case "dirname":
		if rest := c.operands(""); len(rest) == 1 && !strings.Contains(rest[0], unknown) {
			out.text = path.Dir(rest[0]) + "\n"
		}
	case "realpath", "readlink":
		if rest := c.operands(""); len(rest) == 1 && !strings.Contains(rest[0], unknown) {
			out.text = c.j.canonical(rest[0]) + "\n"
		}
	case "pgrep", "pidof", "ps":
		out.taint |= pids
	case "base64", "base32", "xxd", "openssl", "uudecode", "gpg", "gunzip", "zcat", "gzip", "bunzip2", "bzcat", "xz", "xzcat", "unxz", "zstd", "zstdcat", "bzip2", "basenc":
		return c.decoded(known)
	case "rev":
		if known {
			out.text = reversed(c.in.text)
		}
		out.taint |= decoded
	case "tr":
		if known {
			out.text = c.translated()
		}
	case "true", "false", ":", "test", "[", "sleep", "exit", "return", "wait":
		return stream{set: true} // nothing
	case "ls", "rm", "mkdir", "cp", "mv", "touch":
		out.taint = 0
	}
	return out
}

func (c *call) echo() string {
	escapes, newline := false, "\n"
	args := c.args
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		escapes = escapes || strings.Contains(args[0], "e")
		if strings.Contains(args[0], "n") {
			newline = ""
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		text = cleanUnless(ansiC(text), text)
	}
	if len(text) > maxValue {
		return unknown
	}
	return text + newline
}

// cleanUnless takes NULs that decoding made out of a text, but keeps what was unknown before.
func cleanUnless(made, was string) string {
	if strings.Contains(was, unknown) {
		return made
	}
	return clean(made)
}

// printf fills a format in. -v puts the text into a variable.
func (c *call) printf() stream {
	args, variable := c.args, ""
	if len(args) > 1 && args[0] == "-v" {
		variable, args = args[1], args[2:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return stream{}
	}
	text := format(args[0], args[1:])
	if variable != "" {
		c.j.setText(variable, text, c.taint)
		return stream{}
	}
	return stream{text: text, set: true, taint: c.taint}
}

func format(pattern string, args []string) string {
	var b strings.Builder
	if strings.Contains(pattern, unknown) {
		return unknown
	}
	pattern = clean(ansiC(pattern))
	for round := 0; round == 0 || len(args) > 0; round++ {
		used := false
		for i := 0; i < len(pattern); i++ {
			if pattern[i] != '%' || i+1 == len(pattern) {
				b.WriteByte(pattern[i])
				continue
			}
			for i++; i < len(pattern)-1 && strings.IndexByte("0123456789.-+ #*hlqjzt", pattern[i]) >= 0; i++ {
			}
			if pattern[i] == '%' {
				b.WriteByte('%')
				continue
			}
			arg := ""
			if used = true; len(args) > 0 {
				arg, args = args[0], args[1:]
			}
			switch pattern[i] {
			case 'b':
				b.WriteString(cleanUnless(ansiC(arg), arg))
			case 'c':
				b.WriteString(arg[:min(1, len(arg))])
			case 'x', 'o', 'X', 'e', 'f', 'g':
				b.WriteString(unknown)
			default:
				b.WriteString(arg)
			}
			if b.Len() > maxValue {
				return unknown
			}
		}
		if !used {
			break
		}
	}
	return b.String()
}

// passed is a command that prints its input, or files.
func (c *call) passed() stream {
	if c.name == "tee" {
		for _, name := range c.operands("") {
			c.j.keep(c.j.canonical(name), c.in)
		}
		return stream{text: c.in.text, set: true, taint: c.in.taint}
	}
	var out stream
	files := 0
	for _, name := range c.operands("ncktS") {
		if isStdin(name) {
			out = out.and(c.in)
		} else if content, ok := c.j.files[c.j.canonical(name)]; ok {
			out = out.and(content)
		} else {
			out = out.and(stream{text: unknown, set: true})
		}
		files++
	}
	if files == 0 {
		out = c.in
		out.taint |= c.in.taint
	}
	if (c.name == "head" || c.name == "tail") && strings.Contains(out.text, "\n") && len(out.text) < 4096 && !strings.Contains(out.text, unknown) {
		return out // more than is printed, never less
	}
	if !out.set {
		return stream{text: unknown, set: true, taint: out.taint}
	}
	return out
}

// fetched comes from the network, or lies in a file that came from there.
func (c *call) fetched() stream {
	out := stream{text: unknown, set: true, taint: remote}
	for i, arg := range c.args {
		next := ""
		if i+1 < len(c.args) {
			next = c.args[i+1]
		}
		target := ""
		switch {
		case c.name == "curl" && (arg == "-o" || arg == "--output"), c.name == "wget" && (arg == "-O" || arg == "--output-document"):
			target = next
		case c.name == "curl" && strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "o") && len(arg) < 8:
			target = next
		case c.name == "wget" && strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "O"):
			target = next
		case c.name == "wget" && strings.HasPrefix(arg, "-O"):
			target = arg[2:]
		case strings.HasPrefix(arg, "--output="), strings.HasPrefix(arg, "--output-document="):
			_, target, _ = strings.Cut(arg, "=")
		case c.name == "curl" && hasFlag([]string{arg}, "O", "remote-name"), c.name == "wget" && strings.Contains(arg, "://"):
			for _, url := range c.args {
				if strings.Contains(url, "/") && !strings.HasPrefix(url, "-") {
					c.j.keep(c.j.canonical(path.Base(url)), out)
				}
			}
		}
		if target != "" && target != "-" {
			c.j.writesTo(target)
			c.j.keep(c.j.canonical(target), out)
		}
	}
	return out
}

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
