package docker

import "strings"

// longestError bounds the text of an error, in bytes. An engine may name the path of a file that a command has made, with
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

// bounded wraps all errors that leave this package.
func bounded(err error) error {
	if err == nil {
		return nil
	}
	return brief{err}
}
