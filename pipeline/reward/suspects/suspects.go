// Package suspects finds the files in a sandbox that run by themselves when a verifier starts a program: by them, an agent could
// change what a verifier does. It is part of the small program in every sandbox, so it imports little.
package suspects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"trajgen/sandbox"
)

// Helper is its name for sandbox.Command; it reads a Question from its standard input, and writes a File a line to its standard
// output, both as JSON.
const Helper = "suspects"

func init() { sandbox.RegisterHelper(Helper, helper) }

// Question says where to look.
type Question struct {
	Workdir string
	Own     []string // further directories in which an agent can put programs
	System  bool     // whether it can change what belongs to the system, too
	Data    bool     // the answer has contents
}

// File is a file that was found.
type File struct {
	Path string
	// Sum is the SHA-256 of what it holds, or a link leads to; "" for what can have no equal: a directory, or a huge file.
	Sum  string
	Mode fs.FileMode
	Data []byte `json:",omitempty"` // of a file of up to a MiB
}

func helper(_ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	l := look{lines: json.NewEncoder(stdout), seen: map[string]bool{}}
	if err := json.NewDecoder(stdin).Decode(&l.Question); err != nil {
		fmt.Fprintln(stderr, "read the question:", err)
		return 2
	}
	if l.find(); l.err != nil {
		fmt.Fprintln(stderr, l.err)
		return 1
	}
	return 0
}

// look is a search under way.
type look struct {
	Question
	lines *json.Encoder
	seen  map[string]bool // directories and files, links resolved
	err   error           // the first
}

const (
	mostSum  = 256 << 20
	mostData = 1 << 20
)

// report tells of a file, if it is there.
func (l *look) report(path string) {
	info, err := os.Lstat(path)
	if err != nil || l.seen[path] {
		return
	}
	l.seen[path] = true
	found := File{Path: path, Mode: info.Mode().Perm()}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() <= mostSum {
		found.Mode = info.Mode().Perm()
		l.fill(&found)
	}
	if err := l.lines.Encode(found); err != nil && l.err == nil {
		l.err = err
	}
}

// fill reads a file. One that cannot be read is like no other.
func (l *look) fill(found *File) {
	file, err := os.Open(found.Path)
	if err != nil {
		return
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return
	}
	found.Sum = hex.EncodeToString(sum.Sum(nil))
	if !l.Data {
		return
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return
	}
	if data, err := io.ReadAll(io.LimitReader(file, mostData+1)); err == nil && len(data) <= mostData {
		found.Data = data
	}
}

// Sum is that of a File which holds data.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// glob reports the files of a pattern.
func (l *look) glob(pattern string) {
	paths, _ := filepath.Glob(pattern) // the patterns are ours
	for _, path := range paths {
		l.report(path)
	}
}
