package skills

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"trajgen/pipeline/episode"
)

// The bounds of a skill's folder. What goes beyond them is refused before it is read.
const (
	MaxFiles = 50
	MaxFile  = 256 << 10
	MaxSize  = 1 << 20
	maxPath  = 200
)

// Collector gathers the files of a skill from wherever they come, and refuses what a skill may not have. The zero value is empty.
type Collector struct {
	files episode.Files
	lower map[string]string // paths by their lower case
	size  int64
}

// Add reads a file. size is what is said of it.
func (c *Collector) Add(name string, mode fs.FileMode, size int64, open func() (io.ReadCloser, error)) error {
	if err := c.admit(name, mode, size); err != nil {
		return err
	}
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := c.admit(name, mode, int64(len(data))); err != nil { // an archive may say less than there is
		return err
	}
	if kind := program(data); kind != "" {
		return fmt.Errorf("%s is a program for machines (%s); skills have scripts", name, kind)
	}
	if c.files == nil {
		c.files, c.lower = episode.Files{}, map[string]string{}
	}
	c.files[name], c.lower[strings.ToLower(name)] = data, name
	c.size += int64(len(data))
	return nil
}

func (c *Collector) admit(name string, mode fs.FileMode, size int64) error {
	shown := fmt.Sprintf("%.200q", name)
	other, taken := c.lower[strings.ToLower(name)]
	switch {
	case !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) || len(name) > maxPath:
		return fmt.Errorf("%s is not a path within a folder", shown)
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return fmt.Errorf("%s has characters in it that are not seen", shown)
	case !mode.IsRegular():
		return fmt.Errorf("%s is a link or a device (%v); skills have files", shown, mode.Type())
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return fmt.Errorf("%s is setuid or setgid", shown)
	case taken && other == name:
		return fmt.Errorf("%s is there twice", shown)
	case taken:
		return fmt.Errorf("%s and %q differ in case alone", shown, other)
	case len(c.files) >= MaxFiles:
		return fmt.Errorf("there are more than %d files", MaxFiles)
	case size > MaxFile:
		return fmt.Errorf("%s has more than %d kB", shown, MaxFile>>10)
	case c.size+size > MaxSize:
		return fmt.Errorf("the files have more than %d kB together", MaxSize>>10)
	}
	return nil
}

// Skill makes the skill.
func (c *Collector) Skill(folder string, strict bool) (*Skill, error) {
	return New(folder, c.files, strict)
}

// program recognises programs by how they begin.
func program(data []byte) string {
	for magic, kind := range map[string]string{
		"\x7fELF": "ELF", "MZ\x90": "Windows", "\xcf\xfa\xed\xfe": "macOS", "\xca\xfe\xba\xbe": "macOS or Java",
	} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return kind
		}
	}
	return ""
}

// Ignored are names that version control and file managers leave in folders.
func Ignored(name string) bool {
	return slices.Contains([]string{".git", ".gitignore", ".DS_Store", "__pycache__"}, name)
}

// ReadFolder reads the skill in a folder of fsys.
func ReadFolder(fsys fs.FS, folder string, strict bool) (*Skill, error) {
	var c Collector
	err := fs.WalkDir(fsys, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != folder && Ignored(entry.Name()) && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir() || Ignored(entry.Name()):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		within := strings.TrimPrefix(name, folder+"/")
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
			return fmt.Errorf("%q has another name outside (a hard link)", within)
		}
		return c.Add(within, info.Mode(), info.Size(), func() (io.ReadCloser, error) { return fsys.Open(name) })
	})
	if err != nil {
		return nil, err
	}
	return c.Skill(path.Base(folder), strict)
}

// Find lists the skills below a folder: those in it, and those in folders in it, which are categories.
func Find(fsys fs.FS) (folders []string, err error) {
	for _, pattern := range []string{"*/" + Manual, "*/*/" + Manual} {
		found, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			folders = append(folders, path.Dir(name))
		}
	}
	inside := map[string]bool{}
	for _, folder := range folders {
		inside[folder] = true
	}
	maps.DeleteFunc(inside, func(folder string, _ bool) bool { return inside[path.Dir(folder)] || strings.HasPrefix(folder, ".") })
	return slices.Sorted(maps.Keys(inside)), nil
}
