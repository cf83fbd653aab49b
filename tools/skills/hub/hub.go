// Package hub keeps skills that a person installs: it fetches, judges and locks them.
package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/tools/skills"
)

// Hub is a folder with installed skills, lock.json, which says what they are, and audit.log, which says what was done.
type Hub struct {
	Dir     string
	Now     func() time.Time
	Sources Sources
}

// Entry is what the lock says of an installed skill.
type Entry struct {
	Source    string    `json:"source"`
	Trust     string    `json:"trust"`
	Verdict   string    `json:"verdict"`
	Forced    bool      `json:"forced,omitempty"` // installed against the policy
	Digest    string    `json:"digest"`
	Files     []string  `json:"files"`
	Installed time.Time `json:"installed"`
	Updated   time.Time `json:"updated"`
}

// Lock is lock.json.
type Lock struct {
	Version int              `json:"version"`
	Skills  map[string]Entry `json:"skills"`
}

// Options say how a skill is installed.
type Options struct {
	Force bool // also one that is to be treated with caution
	Trust bool // its source is trusted, as a person says
}

// Refusal is a skill that the policy does not let in.
type Refusal struct {
	Name, Trust string
	Report      skills.Report
}

func (r *Refusal) Error() string {
	advice := "it is refused, --force or not"
	if r.Report.Verdict == skills.Caution {
		advice = "--force takes it all the same"
	}
	text := fmt.Sprintf("skill %s is %s (trust: %s); %s", r.Name, r.Report.Verdict, r.Trust, advice)
	for _, f := range r.Report.Findings {
		text += "\n  " + f.String()
	}
	return text
}

const (
	lockName   = "lock.json"
	auditName  = "audit.log"
	quarantine = ".quarantine"
)

// Install fetches the skill of a source and installs it. One of its name must be removed first.
func (h *Hub) Install(ctx context.Context, source string, o Options) (name string, e Entry, err error) {
	err = h.change(func(root *os.Root, lock *Lock) error {
		name, e, err = h.take(ctx, root, source, "", o)
		if err != nil {
			return err
		}
		if _, there := lock.Skills[name]; there {
			return fmt.Errorf("skill %s is installed already; trajgen skills update %s fetches it again", name, name)
		}
		if err := settle(root, name); err != nil {
			return err
		}
		lock.Skills[name] = e
		return nil
	})
	return name, e, errors.Join(err, h.note("install", name, source, e, err))
}

// Update fetches an installed skill again. changed says whether it is another one now.
func (h *Hub) Update(ctx context.Context, name string, o Options) (changed bool, err error) {
	var e Entry
	err = h.change(func(root *os.Root, lock *Lock) error {
		was, there := lock.Skills[name]
		if !there {
			return unknown(lock, name)
		}
		o.Trust, o.Force = o.Trust || was.Trust == skills.Trusted, o.Force || was.Forced
		if _, e, err = h.take(ctx, root, was.Source, name, o); err != nil {
			return err
		}
		e.Installed = was.Installed
		if changed = e.Digest != was.Digest; !changed {
			e.Updated = was.Updated
		}
		if err := settle(root, name); err != nil {
			return err
		}
		lock.Skills[name] = e
		return nil
	})
	return changed, errors.Join(err, h.note("update", name, e.Source, e, err))
}

// Remove removes an installed skill.
func (h *Hub) Remove(name string) error {
	err := h.change(func(root *os.Root, lock *Lock) error {
		if _, there := lock.Skills[name]; !there || skills.CheckName(name) != nil {
			return unknown(lock, name)
		}
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a folder: nothing was removed", filepath.Join(h.Dir, name))
		}
		delete(lock.Skills, name)
		return root.RemoveAll(name)
	})
	return errors.Join(err, h.note("remove", name, "", Entry{}, err))
}

// State is an installed skill as it is now.
type State struct {
	Name string `json:"name"`
	Entry
	Problem string        `json:"problem,omitempty"` // why runs do not use it
	Report  skills.Report `json:"report"`            // of the guard, now
}

// Names lists the skills that are locked.
func (h *Hub) Names() ([]string, error) {
	lock, err := h.Lock()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(lock.Skills)), nil
}

// Usable fails where a run would not use an installed skill.
func Usable(states []State) error {
	bad := 0
	for _, s := range states {
		if s.Problem != "" {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d skills cannot be used", bad, len(states))
	}
	return nil
}

// Harmless fails where the guard calls an installed skill dangerous.
func Harmless(states []State) error {
	if slices.ContainsFunc(states, func(s State) bool { return s.Report.Verdict == skills.Dangerous }) {
		return errors.New("an installed skill is dangerous: remove it")
	}
	return nil
}

// States looks at every installed skill, and at folders that are not installed.
func (h *Hub) States() ([]State, error) {
	states := []State{}
	lock, err := h.Lock()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(h.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return states, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(lock.Skills)) {
		s := State{Name: name, Entry: lock.Skills[name]}
		skill, err := skills.ReadFolder(root.FS(), name, false)
		if err == nil {
			s.Report = skills.Scan(skill)
			err = lock.Check(skill)
		}
		if err != nil {
			s.Problem = err.Error()
		}
		states = append(states, s)
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, entry := range entries {
		if _, locked := lock.Skills[entry.Name()]; entry.IsDir() && !locked && entry.Name() != quarantine {
			states = append(states, State{Name: entry.Name(), Problem: "it is not in " + lockName})
		}
	}
	return states, err
}

// Lock reads lock.json.
func (h *Hub) Lock() (*Lock, error) {
	lock := &Lock{Version: 1, Skills: map[string]Entry{}}
	data, err := os.ReadFile(filepath.Join(h.Dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return lock, nil
	}
	if err == nil {
		err = json.Unmarshal(data, lock)
	}
	if err == nil && lock.Version != 1 {
		err = fmt.Errorf("version %d is not known", lock.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(h.Dir, lockName), err)
	}
	return lock, nil
}

// Check says why a run may not use a skill of the hub: it is not the one that was judged when it was installed.
func (l *Lock) Check(s *skills.Skill) error {
	e, there := l.Skills[s.Name]
	switch {
	case !there:
		return fmt.Errorf("it is not in %s: install it with trajgen skills install", lockName)
	case e.Digest != s.Digest():
		return fmt.Errorf("its files are not those that were installed; trajgen skills update %s fetches them again", s.Name)
	}
	return nil
}

func unknown(lock *Lock, name string) error {
	return fmt.Errorf("no skill %q is installed (have %v)", name, slices.Sorted(maps.Keys(lock.Skills)))
}

// change changes the hub and its lock, alone.
func (h *Hub) change(do func(root *os.Root, lock *Lock) error) error {
	if err := os.MkdirAll(h.Dir, 0o755); err != nil {
		return err
	}
	alone, err := os.OpenFile(filepath.Join(h.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer alone.Close()
	if err := unix.Flock(int(alone.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another process changes %s: %w", h.Dir, err)
	}
	root, err := os.OpenRoot(h.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	defer root.RemoveAll(quarantine)
	lock, err := h.Lock()
	if err != nil {
		return err
	}
	if err := do(root, lock); err != nil {
		return err
	}
	data, err := json.MarshalIndent(lock, "", "  ")
	if err != nil {
		return err
	}
	if err := root.WriteFile(lockName+".new", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return root.Rename(lockName+".new", lockName)
}

// take puts a skill into quarantine and judges what lies there. Of an update the name is given.
func (h *Hub) take(ctx context.Context, root *os.Root, source, want string, o Options) (name string, e Entry, err error) {
	skill, trust, err := h.Sources.Fetch(ctx, source)
	if err != nil {
		return "", e, fmt.Errorf("%s: %w", source, err)
	}
	if name = skill.Name; want != "" && name != want {
		return name, e, fmt.Errorf("%s has the skill %s now", source, name)
	}
	if o.Trust {
		trust = skills.Trusted
	}
	if err := root.RemoveAll(quarantine); err != nil {
		return name, e, err
	}
	if err := lay(root, path.Join(quarantine, name), skill); err != nil {
		return name, e, err
	}
	if skill, err = skills.ReadFolder(root.FS(), path.Join(quarantine, name), false); err != nil {
		return name, e, err
	}
	report := skills.Scan(skill)
	e = Entry{
		Source: source, Trust: trust, Verdict: report.Verdict, Digest: skill.Digest(), Files: skill.Paths(),
		Installed: h.Now().UTC(), Updated: h.Now().UTC(), Forced: skills.Decide(trust, report.Verdict, false) != skills.Allow,
	}
	if skills.Decide(trust, report.Verdict, o.Force) != skills.Allow {
		return name, e, &Refusal{name, trust, report}
	}
	return name, e, nil
}

// settle moves a skill from quarantine to its place.
func settle(root *os.Root, name string) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	return root.Rename(path.Join(quarantine, name), name)
}

// note adds a line to audit.log.
func (h *Hub) note(action, name, source string, e Entry, failed error) error {
	line := struct {
		Time    time.Time `json:"time"`
		Action  string    `json:"action"`
		Skill   string    `json:"skill,omitempty"`
		Source  string    `json:"source,omitempty"`
		Verdict string    `json:"verdict,omitempty"`
		Digest  string    `json:"digest,omitempty"`
		Error   string    `json:"error,omitempty"`
	}{Time: h.Now().UTC(), Action: action, Skill: name, Source: source, Verdict: e.Verdict, Digest: e.Digest}
	if failed != nil {
		line.Error = failed.Error()
	}
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(h.Dir, auditName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = log.Write(append(data, '\n'))
	return errors.Join(err, log.Close())
}
