package policy

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// printed returns the output of a command, as far as it is known: it may become a command or the input of a shell.
func (c *call) printed() stream {
	if slices.ContainsFunc(c.args, func(arg string) bool { return strings.Contains(arg, ".") && c.j.isSecret(c.j.canonical(arg)) }) {
		c.in.taint |= secret
	}
	out := unknownStream(c.in.taint)
	rest := c.operands()
	switch c.name {
	case "echo":
		return stream{c.echo(), true, c.taint}
	case "printf":
		return c.printf()
	case "cat", "tac", "head", "tail", "sort", "uniq", "tee", "less", "more", "nl", "sponge", "pv", "bat":
		return c.passed(rest)
	case "curl", "wget", "fetch", "aria2c", "http", "https", "lynx", "nc", "socat", "telnet", "ftp":
		return c.fetched()
	case "base64", "base32", "xxd", "openssl", "uudecode", "gpg", "gunzip", "zcat", "gzip", "bunzip2", "bzcat", "xz", "xzcat", "unxz", "zstd", "zstdcat", "bzip2", "basenc":
		return c.decoded(rest)
	case "pgrep", "pidof", "ps":
		out.taint |= pids
	case "rev":
		out.taint |= decoded
		runes := []rune(strings.TrimSuffix(c.in.text, "\n"))
		if slices.Reverse(runes); c.in.known() && !slices.Contains(runes, '\n') {
			out.text = string(runes)
		}
	case "tr":
		if len(rest) == 2 && c.in.known() && !hasFlag(c.args, "cCds") {
			out.text = translate(c.in.text, rest[0], rest[1])
		}
	case "pwd":
		out.text = cmp.Or(c.j.directory(), unknown)
	case "true", "false", ":", "test", "[", "sleep", "exit", "return", "wait":
		return stream{set: true} // no output
	case "ls":
		if out.taint, out.text = 0, "*"; len(rest) > 0 && (hasFlag(c.args, "d", "directory") || strings.Contains(rest[0], "*")) {
			out.text = strings.Join(rest, "\n") // names, one a line
		}
	case "rm", "mkdir", "cp", "mv", "touch":
		out.taint = 0
	}
	switch {
	case settings.MatchString(c.name + " " + strings.Join(c.args[:min(1, len(c.args))], "")):
		return stream{":", true, 0}
	case len(rest) != 1 || strings.Contains(rest[0], unknown):
	case c.name == "which" || c.name == "type" || c.name == "command":
		out.text = "/usr/bin/" + rest[0]
	case c.name == "dirname":
		out.text = path.Dir(rest[0])
	case c.name == "realpath" || c.name == "readlink":
		out.text = c.j.canonical(rest[0])
	}
	if out.text != unknown {
		out.text += "\n"
	}
	return out
}

// settings matches programs, with their arguments, whose output a shell should evaluate.
var settings = regexp.MustCompile(`^(ssh-agent|dircolors|conda shell|direnv hook|(pyenv|rbenv|nodenv|starship|zoxide) init|(fnm|opam) env|brew shellenv|` +
	`(kubectl|helm|gh|npm) completion|minikube docker-env)`)

func (c *call) echo() string {
	args, escapes, newline := c.args, false, "\n"
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		escapes = escapes || strings.Contains(args[0], "e")
		if strings.Contains(args[0], "n") {
			newline = ""
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		text, _, _ = expand.Format(new(expand.Config), text, nil)
	}
	return strings.ReplaceAll(text, "\x00", "") + newline
}

// printf expands a format. With -v it sets a variable.
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
	format, args := args[0], append([]string{}, args[1:]...)
	var b strings.Builder
	for round := 0; round == 0 || len(args) > 0; round++ {
		text, used, err := expand.Format(new(expand.Config), format, args)
		if b.WriteString(text); err != nil || b.Len() > MaxCommand {
			b.Reset()
			b.WriteString(unknown)
			break
		}
		if args = args[used:]; used == 0 {
			break
		}
	}
	text := strings.ReplaceAll(b.String(), "\x00", "")
	if variable != "" {
		c.j.setText(variable, text, c.taint)
		return stream{}
	}
	return stream{text, true, c.taint}
}

// passed returns the output of a command that prints its input, or files.
func (c *call) passed(names []string) stream {
	if c.name == "tee" {
		for _, name := range names {
			c.j.keep(c.j.canonical(name), c.in)
		}
		names = nil
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	var out stream
	for _, name := range names {
		content := c.in
		if !isStdin(name) {
			content = c.j.file(name)
		}
		if !content.set {
			content = unknownStream(content.taint)
		}
		out = out.and(content)
	}
	out.taint |= c.in.taint & secret
	return out
}

// fetched returns text from the network, or from a file that came from there.
func (c *call) fetched() stream {
	given, urls := c.parse()
	dir, _ := given.value("P", "directory-prefix", "output-dir")
	_, named := given.value("O", "remote-name", "remote-name-all")
	file, saved := given.value("o", "output", "output-document")
	if c.name == "wget" {
		if file, saved = given.value("O", "output-document"); !saved {
			named = true // under their own names
		}
	}
	if saved && file != "-" {
		c.j.writesTo(file)
		c.j.keep(c.j.canonical(file), unknownStream(remote))
	}
	if named {
		for _, url := range urls[:min(len(urls), maxWords)] {
			c.j.keep(c.j.canonical(path.Join(dir, path.Base(url))), unknownStream(remote))
		}
	}
	return unknownStream(remote)
}

var unpacks = regexp.MustCompile(`^(gunzip|zcat|bunzip2|bzcat|xzcat|unxz|zstdcat|uudecode)$`)

// decoded decodes text that is known.
func (c *call) decoded(files []string) stream {
	if !unpacks.MatchString(c.name) && !hasFlag(c.args, "dDr", "decode", "decompress", "uncompress", "decrypt") {
		return unknownStream(c.in.taint)
	}
	in := c.in
	for _, name := range files {
		if content := c.j.file(name); content.set {
			in = content
		}
	}
	out := unknownStream(in.taint | decoded)
	plain := strings.Join(strings.Fields(in.text), "")
	var data []byte
	switch {
	case !in.known():
	case c.name == "base64" || c.name == "openssl":
		data, _ = base64.RawStdEncoding.DecodeString(strings.TrimRight(plain, "="))
	case c.name == "xxd":
		data, _ = hex.DecodeString(plain)
	}
	if len(data) > 0 {
		out.text = clean(string(data))
	}
	return out
}

// translate returns the output of tr.
func translate(text, from, to string) string {
	set, other := spelled(from), spelled(to)
	return strings.Map(func(r rune) rune {
		if i := slices.Index(set, r); i >= 0 && len(other) > 0 {
			return other[min(i, len(other)-1)]
		}
		return r
	}, text)
}

// spelled expands a set of characters of tr.
func spelled(set string) []rune {
	set = strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z").Replace(set)
	return []rune(characterRange.ReplaceAllStringFunc(set, func(ends string) string {
		var all []byte
		for char := ends[0]; char <= ends[2]; char++ {
			all = append(all, char)
		}
		return string(all)
	}))
}

var characterRange = regexp.MustCompile(`[0-9A-Za-z]-[0-9A-Za-z]`)
