package episode

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
)

// Key says which episode of an experiment this is. Everything that is drawn for an episode is a pure function of
// its key, so the number of workers, the machine and a resume change nothing.
type Key struct {
	Seed   uint64 `json:"seed"`
	Task   string `json:"task"`   // Task.ID, unique within a dataset
	Sample int    `json:"sample"` // the n-th try at the task, from 0
	// Path leads from the root of a tree of subagents to one of them: turn, call and task of each generation; "" is the root.
	Path string `json:"path,omitempty"`
	// Twin tells a twin from its clean episode and from its other twins, see Twin.Name; "" is a clean one. It is part of the ID and of
	// no draw: what is drawn for a twin is what was drawn for its clean episode.
	Twin string `json:"twin,omitempty"`
}

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ID is the episode's name: 26 lower-case characters (130 bits of a SHA-256 over the key), safe in file names. That of a subagent
// is its root's, then its path.
func (k Key) ID() string {
	root, purpose := k, "id"
	root.Path = ""
	if k.Twin != "" {
		purpose = "id of twin " + k.Twin
	}
	sum := root.sum(purpose)
	id := idEncoding.EncodeToString(sum[:])[:26]
	if k.Path != "" {
		id += "-" + k.Path
	}
	return id
}

// Rand returns an independent stream for each purpose, so that a new consumer of randomness disturbs no old draw.
func (k Key) Rand(purpose string) *rand.Rand {
	return rand.New(rand.NewChaCha8(k.sum(purpose)))
}

// RequestSeed is the seed that is sent to the model with the given turn: positive and exact in a float64, as some
// servers parse JSON numbers that way.
func (k Key) RequestSeed(turn int) int {
	return k.seed("request-seed", turn)
}

func (k Key) seed(purpose string, turn int) int {
	sum := k.sum(purpose)
	n := binary.LittleEndian.Uint32(sum[:4]) + uint32(turn)
	return int(n & 0x7fffffff)
}

// RequestSeed is the seed that is sent to the model with the given turn. After the call at which a twin parts from its clean episode it has seeds of its own: with
// the same ones a server would say the same again, and hide what chance does.
func (ep *Episode) RequestSeed(turn int) int {
	if ep.Twin == nil || turn <= ep.Twin.Turn {
		return ep.Key.RequestSeed(turn)
	}
	return ep.Key.seed("request-seed of twin "+ep.Key.Twin, turn)
}

// sum hashes the key with lengths in front of every text, so that no two keys share a preimage.
func (k Key) sum(purpose string) [32]byte {
	buf := make([]byte, 0, 64+len(k.Task)+len(purpose))
	buf = binary.LittleEndian.AppendUint64(buf, k.Seed)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(k.Task)))
	buf = append(buf, k.Task...)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(k.Sample))
	if k.Path != "" { // a purpose has no zero in it
		buf = append(append(append(buf, 0), k.Path...), 0)
	}
	buf = append(buf, purpose...)
	return sha256.Sum256(buf)
}
