package episode

// Memory is what an agent remembers from one session to the next.
type Memory struct {
	Memory []string `json:"memory,omitempty"` // its own notes
	User   []string `json:"user,omitempty"`   // what it knows of the user
}

// The bounds of a Memory, in characters of the entries joined with MemorySeparator.
const (
	MaxMemory       = 2200
	MaxUserMemory   = 1375
	MemorySeparator = "\n§\n"
)
