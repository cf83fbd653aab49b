package harbor

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

const (
	chunk  = 600 << 10 // bytes of an archive that one command carries, before they are written as text
	column = 76
)

// unpack returns shell commands that make a directory anew with these files in it.
func unpack(dir string, files map[string]file) ([]string, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range sortedNames(files) {
		f := files[name]
		header := &tar.Header{Name: "./" + name, Mode: 0o644, Size: int64(len(f.data)), Format: tar.FormatGNU}
		if f.executable || bytes.HasPrefix(f.data, []byte("#!")) || name == "solve.sh" {
			header.Mode = 0o755
		}
		err := w.WriteHeader(header)
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	all, packed := archive.Bytes(), dir+"/.packed"
	clear := fmt.Sprintf("mkdir -p %s && find %[1]s -mindepth 1 -delete", quote(dir))
	extract := "tar -x --no-same-owner -C " + quote(dir)
	if len(all) <= chunk {
		return []string{fmt.Sprintf("%s && %s", clear, decode(all, " | "+extract))}, nil
	}
	commands := []string{clear}
	for part := range slices.Chunk(all, chunk) {
		commands = append(commands, decode(part, " >> "+quote(packed)))
	}
	return append(commands, fmt.Sprintf("%s -f %s && rm %[2]s", extract, quote(packed))), nil
}

// decode is a command that writes bytes to where its end says.
func decode(data []byte, end string) string {
	text := base64.StdEncoding.AppendEncode(nil, data)
	var command strings.Builder
	command.WriteString("base64 -d <<'END_OF_ARCHIVE'" + end + "\n")
	for line := range slices.Chunk(text, column) {
		command.Write(append(line, '\n'))
	}
	command.WriteString("END_OF_ARCHIVE")
	return command.String()
}
