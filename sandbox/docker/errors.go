package docker

import "strings"

// longestError is how long the text of an error may be, in bytes. An engine names the path of a file that a command has made, with
// thousands of directories.
const longestError = 4 << 10

// brief is an error with a text of bounded length.
type brief struct{ cause error }

func (b brief) Error() string {
	text := b.cause.Error()
	if len(text) <= longestError {
		return text
	}
	const part = longestError/2 - 8
	return strings.ToValidUTF8(text[:part]+" [...] "+text[len(text)-part:], "")
}

func (b brief) Unwrap() error { return b.cause }

// bounded is what all that leaves this package goes through.
func bounded(err error) error {
	if err == nil {
		return nil
	}
	return brief{err}
}
