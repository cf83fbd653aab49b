package tools

import "strings"

// shellScript is what the checks need to know of a command line.
type shellScript struct {
	commands   [][]string // the words of each simple command, quotes removed, redirections left out
	background bool       // an '&' puts something into the background
}

// parseShell reads a command line the way bash cuts it into commands. It is lenient: what bash would refuse is read
// somehow, as bash says so itself when it runs.
func parseShell(src string) shellScript {
	s := &shellScanner{src: src}
	for s.pos < len(s.src) {
		s.step()
	}
	s.endCommand()
	for len(s.outer) > 0 {
		s.leave()
		s.endCommand()
	}
	return s.script
}

type shellScanner struct {
	src    string
	pos    int
	script shellScript
	simple
	outer    []simple // commands around a $( ) or ( ) that is being read
	heredocs []heredoc
}

// simple is a simple command being read.
type simple struct {
	words    []string
	word     []byte
	inWord   bool
	redirect bool // the next word is the target of a redirection
}

type heredoc struct {
	delimiter string
	tabs      bool // <<-
}

func (s *shellScanner) at(prefix string) bool { return strings.HasPrefix(s.src[s.pos:], prefix) }

func (s *shellScanner) add(text string) {
	s.word = append(s.word, text...)
	s.inWord = true
}

func (s *shellScanner) endWord() {
	if s.inWord && !s.redirect {
		s.words = append(s.words, string(s.word))
	}
	if s.inWord {
		s.redirect = false
	}
	s.word = nil
	s.inWord = false
}

func (s *shellScanner) endCommand() {
	s.endWord()
	if len(s.words) > 0 {
		s.script.commands = append(s.script.commands, s.words)
	}
	s.simple = simple{}
}

func (s *shellScanner) enter() {
	s.outer = append(s.outer, s.simple)
	s.simple = simple{}
}

func (s *shellScanner) leave() {
	s.simple = s.outer[len(s.outer)-1]
	s.outer = s.outer[:len(s.outer)-1]
}

func (s *shellScanner) step() {
	switch c := s.src[s.pos]; c {
	case '\\':
		if !s.at("\\\n") && s.pos+1 < len(s.src) {
			s.add(s.src[s.pos+1 : s.pos+2])
		}
		s.pos += 2
	case '\'':
		s.add(s.until("'", false))
	case '"':
		s.add(s.doubleQuoted())
	case '`':
		s.add(s.until("`", true))
	case '$':
		s.dollar()
	case '#':
		if s.inWord {
			s.add("#")
			s.pos++
			return
		}
		if n := strings.IndexByte(s.src[s.pos:], '\n'); n >= 0 {
			s.pos += n
		} else {
			s.pos = len(s.src)
		}
	case ' ', '\t', '\r':
		s.endWord()
		s.pos++
	case '\n':
		s.endCommand()
		s.pos++
		s.skipHeredocs()
	case ';':
		s.endCommand()
		for s.pos++; s.at(";") || s.at("&"); s.pos++ { // ;; ;& ;;& of case
		}
	case '&', '|':
		s.operator()
	case '(':
		if !s.inWord && s.at("((") {
			s.arithmetic(2)
			return
		}
		s.enter()
		s.pos++
	case ')':
		s.endCommand()
		if len(s.outer) > 0 {
			s.leave()
		}
		s.pos++
	case '<', '>':
		s.redirection()
	default:
		s.add(s.src[s.pos : s.pos+1])
		s.pos++
	}
}

// until reads past an opening quote to the closing one and returns what is between.
func (s *shellScanner) until(quote string, escapes bool) string {
	s.pos++
	start := s.pos
	for s.pos < len(s.src) {
		switch {
		case escapes && s.src[s.pos] == '\\':
			s.pos++
		case s.at(quote):
			text := s.src[start:s.pos]
			s.pos++
			return text
		}
		s.pos++
	}
	s.pos = len(s.src)
	return s.src[min(start, s.pos):]
}

func (s *shellScanner) doubleQuoted() string {
	s.pos++
	start, depth := s.pos, 0
	for ; s.pos < len(s.src); s.pos++ {
		switch {
		case s.src[s.pos] == '\\':
			s.pos++
		case s.at("$("):
			depth++
			s.pos++
		case depth > 0 && s.src[s.pos] == '\'':
			s.until("'", false)
			s.pos--
		case depth > 0 && s.src[s.pos] == '"':
			s.doubleQuoted()
			s.pos--
		case depth > 0 && s.src[s.pos] == '(':
			depth++
		case depth > 0 && s.src[s.pos] == ')':
			depth--
		case depth == 0 && s.src[s.pos] == '"':
			text := s.src[start:s.pos]
			s.pos++
			return text
		}
	}
	s.pos = len(s.src)
	return s.src[min(start, s.pos):]
}

func (s *shellScanner) dollar() {
	switch {
	case s.at("$(("):
		s.add("$((")
		s.arithmetic(3)
	case s.at("$("):
		s.add("$(")
		s.enter()
		s.pos += 2
	case s.at("$'"):
		s.pos++
		s.add(s.until("'", true))
	case s.at("${"):
		s.add("${}")
		depth := 0
		for ; s.pos < len(s.src); s.pos++ {
			switch s.src[s.pos] {
			case '\\':
				s.pos++
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					s.pos++
					return
				}
			}
		}
		s.pos = len(s.src)
	default:
		s.add("$")
		s.pos++
	}
}

// arithmetic skips (( )), where '&' is an operator on numbers.
func (s *shellScanner) arithmetic(opening int) {
	s.pos += opening
	for depth := 2; s.pos < len(s.src) && depth > 0; s.pos++ {
		switch s.src[s.pos] {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
}

func (s *shellScanner) operator() {
	switch {
	case s.at("&>"):
		s.endWord()
		s.redirect = true
		s.pos += 2
		if s.at(">") {
			s.pos++
		}
		return
	case s.at("&&"), s.at("||"), s.at("|&"):
		s.pos += 2
	case s.at("&"):
		s.script.background = true
		s.pos++
	default:
		s.pos++
	}
	s.endCommand()
}

func (s *shellScanner) redirection() {
	if s.inWord && strings.Trim(string(s.word), "0123456789") == "" {
		s.word = nil // the descriptor of 2>file
		s.inWord = false
	}
	s.endWord()
	switch {
	case s.at("<("), s.at(">("):
		s.add("<(")
		s.enter()
		s.pos += 2
		return
	case s.at("<<<"):
		s.pos += 3
	case s.at("<<"):
		s.pos += 2
		s.heredoc()
		return
	case s.at(">&"), s.at("<&"), s.at(">>"), s.at(">|"), s.at("<>"):
		s.pos += 2
	default:
		s.pos++
	}
	s.redirect = true
}

// heredoc reads the delimiter; the body begins after the line.
func (s *shellScanner) heredoc() {
	doc := heredoc{}
	if s.at("-") {
		doc.tabs = true
		s.pos++
	}
	for s.at(" ") || s.at("\t") {
		s.pos++
	}
	var word strings.Builder
	for s.pos < len(s.src) && !strings.ContainsRune(" \t\r\n;&|<>()", rune(s.src[s.pos])) {
		switch c := s.src[s.pos]; c {
		case '\'', '"':
			word.WriteString(s.until(string(c), false))
		case '\\':
			s.pos++
		default:
			word.WriteByte(c)
			s.pos++
		}
	}
	doc.delimiter = word.String()
	s.heredocs = append(s.heredocs, doc)
}

func (s *shellScanner) skipHeredocs() {
	for _, doc := range s.heredocs {
		for s.pos < len(s.src) {
			line, _, _ := strings.Cut(s.src[s.pos:], "\n")
			s.pos = min(s.pos+len(line)+1, len(s.src))
			if doc.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == doc.delimiter {
				break
			}
		}
	}
	s.heredocs = nil
}
