package skills

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"trajgen/sandbox"
)

//go:embed bundled
var bundledFiles embed.FS

// Bundled are the files of the skills that come along.
func Bundled() fs.FS {
	files, err := fs.Sub(bundledFiles, "bundled")
	if err != nil {
		panic(err)
	}
	return files
}

// Set is the skills of a run. It is not changed after it was opened, and all episodes share it.
type Set struct {
	skills   []*Skill // by category and name
	dirs     map[*Skill]string
	folder   *sandbox.Folder // all skills, for the sandboxes
	settings Settings
}

// Source is where skills of a run are from.
type Source struct {
	Name  string // as the run file has it
	Files fs.FS
	Trust string
	// Check says why a skill may not be used; nil lets all pass that the guard does.
	Check func(*Skill) error
}

// Open reads the skills of the sources. warn gets what is strange about them.
func Open(settings Settings, sources []Source, warn func(string)) (*Set, error) {
	set := &Set{settings: settings, dirs: map[*Skill]string{}}
	for _, source := range sources {
		folders, err := Find(source.Files)
		if err != nil {
			return nil, fmt.Errorf("skills of %s: %w", source.Name, err)
		}
		if len(folders) == 0 {
			return nil, fmt.Errorf("%s holds no skill: want NAME/%s or CATEGORY/NAME/%s", source.Name, Manual, Manual)
		}
		for _, folder := range folders {
			name := path.Base(folder)
			if len(settings.Include) > 0 && !slices.Contains(settings.Include, name) {
				continue
			}
			skill, err := ReadFolder(source.Files, folder, false)
			if err == nil {
				err = set.admit(skill, source, warn)
			}
			if err != nil {
				return nil, fmt.Errorf("skill %s of %s: %w", folder, source.Name, err)
			}
			if at := path.Dir(folder); at != "." {
				skill.Category = at
			}
			set.skills = append(set.skills, skill)
		}
	}
	slices.SortStableFunc(set.skills, compare)
	if err := set.place(); err != nil {
		return nil, err
	}
	var files []sandbox.FileWrite
	for _, s := range set.skills {
		for _, name := range s.Paths() {
			files = append(files, Write(path.Join(set.dirs[s], name), s.Files[name]))
		}
	}
	set.folder = sandbox.NewFolder(path.Base(Root), files...)
	return set, nil
}

func compare(a, b *Skill) int {
	return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Name, b.Name))
}

// admit lets the guard and the source judge.
func (s *Set) admit(skill *Skill, source Source, warn func(string)) error {
	for _, odd := range skill.Warnings {
		warn(fmt.Sprintf("skill %s of %s: %s", skill.Name, source.Name, odd))
	}
	if source.Check != nil {
		if err := source.Check(skill); err != nil {
			return err
		}
	}
	report := Scan(skill)
	switch {
	case Decide(source.Trust, report.Verdict, true) == Allow:
		return nil
	case s.settings.Guard == "warn":
		warn(fmt.Sprintf("skill %s of %s is %s: %s", skill.Name, source.Name, report.Verdict, report.Findings[0]))
		return nil
	}
	return fmt.Errorf("the guard calls it %s (%s); skills.guard warn uses it all the same", report.Verdict, report.Findings[0])
}

// place gives each skill its folder in sandboxes: its name, with the category in front of it where the name alone is another's, too.
func (s *Set) place() error {
	named, taken := map[string]int{}, map[string]bool{}
	for _, skill := range s.skills {
		named[skill.Name]++
	}
	for _, skill := range s.skills {
		dir := skill.Name
		if named[dir] > 1 && skill.Category != "" {
			dir = skill.Category + "." + skill.Name
		}
		if taken[dir] {
			return fmt.Errorf("two skills are called %s; leave one out, or put them into folders of different categories", dir)
		}
		taken[dir], s.dirs[skill] = true, dir
	}
	for _, name := range s.settings.Include {
		if named[name] == 0 {
			return fmt.Errorf("skills.include: skill %q does not exist in %s", name, strings.Join(s.settings.Dirs, ", "))
		}
	}
	return nil
}

// Digest identifies the skills; "" for none.
func (s *Set) Digest() string {
	if s == nil || len(s.skills) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, skill := range s.skills {
		fmt.Fprintln(sum, s.dirs[skill], skill.Digest())
	}
	return fmt.Sprintf("%d sha256:%x", len(s.skills), sum.Sum(nil)[:8])
}

// Skills lists them.
func (s *Set) Skills() []*Skill { return slices.Clone(s.skills) }
