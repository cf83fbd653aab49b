// Command pack packs programs for package embedded: pack ARCHIVE PROGRAM... It leaves an archive with the same programs as it
// is: packing takes seconds, comparing less than one.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trajgen/sandbox/internal/packed"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "pack: want ARCHIVE PROGRAM...")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(archive string, paths []string) error {
	var programs []packed.Program
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		programs = append(programs, packed.Program{Name: filepath.Base(path), Content: content})
	}
	if held, err := holds(archive, programs); held || err != nil {
		return err
	}
	// Several may run at once, and readers must find a whole archive.
	file, err := os.CreateTemp(filepath.Dir(archive), "packed-new.*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(packed.Write(file, programs), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), archive)
}

// holds reports whether an archive holds exactly these programs. An unreadable archive holds none.
func holds(archive string, programs []packed.Program) (bool, error) {
	content, err := os.ReadFile(archive)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	old, err := packed.Read(bytes.NewReader(content))
	if err != nil || len(old) != len(programs) {
		return false, nil
	}
	for _, p := range programs {
		if !bytes.Equal(old[p.Name], p.Content) {
			return false, nil
		}
	}
	return true, nil
}
