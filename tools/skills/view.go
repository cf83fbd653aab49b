package skills

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// View is the skills of one episode: the run's, and what the agent makes of them and beside them. Calls may use it at once.
type View struct {
	set   *Set
	root  string // where skills lie in the sandbox; "" where only an open sandbox tells
	vars  map[string]string
	trace episode.Skills

	mu      sync.Mutex // guards the fields below
	skills  []*Skill   // by category and name
	offered []string   // names in the system message, in its order
	own     map[string]bool
	dirs    map[string]string // of skills by qualified name
	changes []change          // in their order
}

// change is what the agent made of a skill: another one, or nil when it removed it.
type change struct {
	call Call
	dir  string
	now  *Skill
}

// Call identifies a call of the episode.
type Call struct {
	Turn       int
	Parent, ID string
}

// ViewConfig is an episode's.
type ViewConfig struct {
	Rand       *rand.Rand         // draws whether the episode has the skills
	Guarantees sandbox.Guarantees // of the sandbox's backend
	Env        map[string]string  // of the sandbox
}

// Root is where the run's skills lie in a sandbox that cannot change them, and has files of its own. In others the open sandbox
// tells.
const (
	Root   = "/skills"
	folder = "/skills/"     // what the paths of all have in them
	own    = "/own/skills/" // and those of the agent's, which lie in the home directory
)

// View draws what an episode has. It is nil for a run without skills.
func (s *Set) View(config ViewConfig) *View {
	if s == nil || len(s.skills) == 0 {
		return nil
	}
	v := &View{
		set: s, vars: config.Env, trace: episode.Skills{Mode: s.settings.Mode}, own: map[string]bool{}, dirs: map[string]string{},
	}
	if config.Guarantees.FixedFolder && config.Guarantees.Isolation["files"] == "own" {
		v.root = Root
	}
	switch s.settings.Mode {
	case "":
		v.trace.Mode = With
	case Draw:
		share := s.settings.Share
		if share == 0 {
			share = 0.5
		}
		v.trace.Mode, v.trace.LogP = Without, math.Log1p(-share)
		if config.Rand.Float64() < share {
			v.trace.Mode, v.trace.LogP = With, math.Log(share)
		}
	}
	return v
}

// Has says whether the episode has the skills.
func (v *View) Has() bool { return v != nil && v.trace.Mode == With }

// Shell says whether commands in skills are run when they are viewed.
func (v *View) Shell() bool { return v.set.settings.InlineShell }

// maxIndex bounds the list of skills in the system message, in bytes.
const maxIndex = 4096

// Begin chooses the skills that suit an episode's toolsets. It returns the end of the system message, which lists them.
func (v *View) Begin(toolsets []string) string {
	v.skills, v.offered = nil, nil
	has := func(name string) bool { return slices.Contains(toolsets, name) }
	for _, s := range v.set.skills {
		lacks := slices.ContainsFunc(s.Requires, func(name string) bool { return !has(name) })
		if s.Supported() && !lacks && !slices.ContainsFunc(s.FallbackFor, has) {
			v.skills = append(v.skills, s)
			v.dirs[Qualified(s)] = v.set.dirs[s]
		}
	}
	if len(v.skills) == 0 {
		return ""
	}
	const intro = "You have skills: folders of instructions, and scripts, for particular kinds of work. Before you begin, " +
		"see whether one fits the task, and read it with skill_view.\n"
	var list strings.Builder
	categories := map[string]int{}
	for _, s := range v.skills {
		fmt.Fprintf(&list, "\n- %s: %s", s.Name, strings.Join(strings.Fields(s.Description), " "))
		categories[CategoryOf(s)]++
	}
	if list.Len() <= maxIndex {
		for _, s := range v.skills {
			v.offered = append(v.offered, Qualified(s))
		}
		return intro + list.String()
	}
	list.Reset()
	for _, name := range slices.Sorted(maps.Keys(categories)) {
		fmt.Fprintf(&list, "\n- %s: %d skills", name, categories[name])
	}
	return intro + "skills_list lists those of a category:\n" + list.String()
}

// CategoryOf is the name of a skill's category.
func CategoryOf(s *Skill) string {
	if s.Category == "" {
		return "general"
	}
	return s.Category
}

// Qualified is a skill's name with its category.
func Qualified(s *Skill) string { return CategoryOf(s) + "/" + s.Name }

// List lists the skills of a category, or all.
func (v *View) List(category string) []*Skill {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(v.skills), func(s *Skill) bool { return category != "" && CategoryOf(s) != category })
}

// Find finds the skills that a name means: NAME, CATEGORY/NAME or CATEGORY:NAME.
func (v *View) Find(name string) []*Skill {
	return slices.DeleteFunc(v.List(""), func(s *Skill) bool {
		return name != s.Name && name != Qualified(s) && name != CategoryOf(s)+":"+s.Name
	})
}

// Own says whether the agent made or changed the skill.
func (v *View) Own(s *Skill) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.own[Qualified(s)]
}

// Dir is a skill's folder in the sandbox. open opens that, where only it knows.
func (v *View) Dir(s *Skill, open func() (sandbox.Sandbox, error)) (string, error) {
	root := v.root
	if written := v.Own(s); root == "" || written {
		box, err := open()
		if err != nil {
			return "", err
		}
		if written {
			return v.OwnDir(s, box), nil
		}
		root = box.Layout().ReadOnly
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return path.Join(root, v.dirs[Qualified(s)]), nil
}

// OwnDir is the folder of a skill that the agent writes.
func (v *View) OwnDir(s *Skill, box sandbox.Sandbox) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return path.Join(box.Layout().Home, own, v.dirs[Qualified(s)])
}

// Folder is what the episode's sandbox is to have, read-only; nil when it has no skills.
func (v *View) Folder() *sandbox.Folder {
	if !v.Has() {
		return nil
	}
	return v.set.folder
}

// Write is a file of a skill in a sandbox. What begins with #! can be run.
func Write(name string, data []byte) sandbox.FileWrite {
	w := sandbox.FileWrite{Path: name, Data: data}
	if strings.HasPrefix(string(data[:min(2, len(data))]), "#!") {
		w.Mode = 0o755
	}
	return w
}

// Name gives a skill that the agent makes its folder.
func (v *View) Name(s *Skill) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if name := Qualified(s); v.dirs[name] == "" {
		v.dirs[name] = s.Name
	}
}

// Put adds a skill of the agent's, in the place of was if that is not nil.
func (v *View) Put(call Call, was, now *Skill) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.skills = slices.DeleteFunc(v.skills, func(other *Skill) bool { return other == was })
	v.skills = append(v.skills, now)
	v.changes = append(v.changes, change{call, v.dirs[Qualified(now)], now})
	slices.SortStableFunc(v.skills, compare)
	v.own[Qualified(now)] = true
}

// Remove takes a skill from the episode.
func (v *View) Remove(call Call, s *Skill) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.skills = slices.DeleteFunc(v.skills, func(other *Skill) bool { return other == s })
	v.changes = append(v.changes, change{call, v.dirs[Qualified(s)], nil})
	delete(v.own, Qualified(s))
}

// Variables says which variables a skill requires that the sandbox lacks.
func (v *View) Variables(s *Skill) (missing []string) {
	for _, name := range s.Variables {
		if v.vars[name] == "" {
			missing = append(missing, name)
		}
	}
	return missing
}

// Trace is what the row keeps of the episode's skills, but for the events of its calls.
func (v *View) Trace() *episode.Skills {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	trace := v.trace
	for i, name := range v.offered {
		at := slices.IndexFunc(v.set.skills, func(s *Skill) bool { return Qualified(s) == name })
		s := v.set.skills[at]
		trace.Events = append(trace.Events, episode.SkillEvent{
			Kind: episode.SkillOffered, Skill: s.Name, Digest: s.Digest(), Bytes: int64(s.Size()), Rank: i + 1,
		})
	}
	for _, s := range v.skills {
		if !v.own[Qualified(s)] {
			continue
		}
		if trace.Written == nil {
			trace.Written = episode.Files{}
		}
		for name, data := range s.Files {
			trace.Written[path.Join(v.dirs[Qualified(s)], name)] = data
		}
	}
	return &trace
}

// At finds the skill and the file that a path in the sandbox was of when these calls had been made.
func (v *View) At(made map[Call]bool, name string) (skill *Skill, file string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name = path.Clean(name)
	if _, within, ok := strings.Cut(name, own); ok {
		dir, file, _ := strings.Cut(within, "/")
		for _, c := range v.changes {
			if c.dir == dir && made[c.call] {
				skill = c.now
			}
		}
		return skill, file
	}
	before, within, ok := strings.Cut(name, folder)
	if !ok || v.root != "" && before != "" {
		return nil, ""
	}
	dir, file, _ := strings.Cut(within, "/")
	return v.in(dir), file
}

// in is the run's skill in a folder.
func (v *View) in(dir string) *Skill {
	for s, of := range v.set.dirs {
		if of == dir {
			return s
		}
	}
	return nil
}

// Changed are the events of files of the run's skills that the agent changed, by their paths in the folder: what could not be
// prevented is seen.
func (v *View) Changed(turn int, paths []string) (events []episode.SkillEvent) {
	for _, name := range paths {
		dir, file, _ := strings.Cut(name, "/")
		s := v.in(dir)
		events = append(events, episode.SkillEvent{
			Turn: turn, Kind: episode.SkillChanged, Skill: s.Name, File: file,
			Digest: s.FileDigest(file), Bytes: int64(len(s.Files[file])),
		})
	}
	return events
}
