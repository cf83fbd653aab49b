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
	known := c.in.set && isKnown(c.in.text)
	if c.j.any(c.args, "secret") {
		c.in.text += secret
	}
	text, operand := unknownFrom(c.in.text), first(c.operands)
	switch c.name {
	case "echo":
		return stream{echo(c.args), true}
	case "printf":
		variable, text := printf(c.args)
		if variable == "" {
			return stream{text, true}
		}
		c.j.setText(variable, text)
		return stream{}
	case "cat", "tac", "head", "tail", "sort", "uniq", "tee", "less", "more", "nl", "sponge", "pv", "bat":
		return c.passed()
	case "curl", "wget", "fetch", "aria2c", "http", "https", "lynx", "nc", "socat", "telnet", "ftp":
		return c.fetched()
	case "base64", "base32", "xxd", "openssl", "uudecode", "gpg", "gunzip", "zcat", "gzip", "bunzip2", "bzcat", "xz", "xzcat", "unxz", "zstd", "zstdcat", "bzip2", "basenc":
		in := c.in
		for _, name := range c.operands {
			if content := c.j.file(name); content.set {
				in = content
			}
		}
		return c.decode(in)
	case "pgrep", "pidof", "ps":
		text += pids
	case "rev":
		text += decoded
		if runes := []rune(strings.TrimSuffix(c.in.text, "\n")); known && !slices.Contains(runes, '\n') {
			slices.Reverse(runes)
			text = string(runes)
		}
	case "tr":
		if len(c.operands) == 2 && known && !c.given.has("c", "C", "d", "s") {
			text = translate(c.in.text, c.operands[0], c.operands[1])
		}
	case "pwd":
		text = cmp.Or(c.j.directory(), unknown)
	case "true", "false", ":", "test", "[", "sleep", "exit", "return", "wait":
		return stream{set: true} // no output
	case "ls":
		if text = "*"; operand != "" && (c.given.has("d", "directory") || strings.Contains(operand, "*")) {
			text = strings.Join(c.operands, "\n") // names, one a line
		}
	case "rm", "mkdir", "cp", "mv", "touch":
		text = unknown
	}
	switch {
	case settings.MatchString(c.name + " " + first(c.args)):
		return stream{":", true}
	case len(c.operands) != 1 || !isKnown(operand):
	case c.name == "which" || c.name == "type" || c.name == "command":
		text = "/usr/bin/" + operand
	case c.name == "dirname":
		text = path.Dir(operand)
	case c.name == "realpath" || c.name == "readlink":
		text = c.j.canonical(operand)
	}
	if isKnown(text) {
		text += "\n"
	}
	return stream{text, true}
}

// settings matches programs, with their arguments, whose output a shell should evaluate.
var settings = regexp.MustCompile(`^(ssh-agent|dircolors|conda shell|direnv hook|(pyenv|rbenv|nodenv|starship|zoxide) init|(fnm|opam) env|brew shellenv|` +
	`(kubectl|helm|gh|npm) completion|minikube docker-env)`)

func echo(args []string) string {
	escapes, newline := false, "\n"
	for len(args) > 0 && echoOption.MatchString(args[0]) {
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

var echoOption = regexp.MustCompile(`^-[neE]+$`)

// printf expands a format. With -v it sets a variable.
func printf(args []string) (variable, text string) {
	if len(args) > 1 && args[0] == "-v" {
		variable, args = args[1], args[2:]
	}
	if first(args) == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return variable, ""
	}
	format, args := args[0], slices.Clone(args[1:])
	for round := 0; round == 0 || len(args) > 0; round++ {
		more, used, err := expand.Format(new(expand.Config), format, args)
		if text += more; err != nil || len(text) > MaxCommand {
			text = unknown
			break
		}
		if args = args[used:]; used == 0 {
			break
		}
	}
	return variable, strings.ReplaceAll(text, "\x00", "")
}

// passed returns the output of a command that prints its input, or files.
func (c *call) passed() (out stream) {
	names := c.operands
	if c.name == "tee" {
		for _, name := range names {
			c.j.keep(c.j.canonical(name), c.in)
		}
		names = nil
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		content := c.in
		if !isStdin(name) {
			content = c.j.file(name)
		}
		switch {
		case content.set:
		case c.j.is("secret", c.j.canonical(name)):
			content = stream{unknown + secret, true}
		default:
			content = stream{unknown, true}
		}
		out = out.and(content)
	}
	return out
}

// fetched returns text from the network, or from a file that came from there.
func (c *call) fetched() stream {
	fetched := stream{unknown + remote, true}
	dir, _ := c.given.value("P", "directory-prefix", "output-dir")
	named := c.given.has("O", "remote-name", "remote-name-all")
	file, saved := c.given.value("o", "output", "output-document")
	if c.name == "wget" {
		if file, saved = c.given.value("O", "output-document"); !saved {
			named = true // under their own names
		}
	}
	if saved && file != "-" {
		c.j.report(c.j.writeRule(file))
		c.j.keep(c.j.canonical(file), fetched)
	}
	if named {
		for _, url := range c.operands[:min(len(c.operands), maxWords)] {
			c.j.keep(c.j.canonical(path.Join(dir, path.Base(url))), fetched)
		}
	}
	return fetched
}

var unpacks = regexp.MustCompile(`^(gunzip|zcat|bunzip2|bzcat|xzcat|unxz|zstdcat|uudecode)$`)

// decode decodes text that is known.
func (c *command) decode(in stream) stream {
	if !unpacks.MatchString(c.name) && !c.given.has("d", "D", "r", "decode", "decompress", "uncompress", "decrypt") {
		return stream{unknownFrom(in.text), true}
	}
	plain := strings.Join(strings.Fields(in.text), "")
	var data []byte
	switch {
	case !in.set || !isKnown(in.text):
	case c.name == "base64" || c.name == "openssl":
		data, _ = base64.RawStdEncoding.DecodeString(strings.TrimRight(plain, "="))
	case c.name == "xxd":
		data, _ = hex.DecodeString(plain)
	}
	if len(data) > 0 {
		return stream{clean(string(data)), true}
	}
	return stream{unknownFrom(in.text, decoded), true}
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
