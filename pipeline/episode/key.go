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
}

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ID is the episode's name: 26 lower-case characters (130 bits of a SHA-256 over the key), safe in file names.
func (k Key) ID() string {
	sum := k.sum("id")
	return idEncoding.EncodeToString(sum[:])[:26]
}

// Rand returns an independent stream for each purpose, so that a new consumer of randomness disturbs no old draw.
func (k Key) Rand(purpose string) *rand.Rand {
	return rand.New(rand.NewChaCha8(k.sum(purpose)))
}

// RequestSeed is the seed that is sent to the model with the given turn: positive and exact in a float64, as some
// servers parse JSON numbers that way.
func (k Key) RequestSeed(turn int) int {
	sum := k.sum("request-seed")
	n := binary.LittleEndian.Uint32(sum[:4]) + uint32(turn)
	return int(n & 0x7fffffff)
}

// sum hashes the key with lengths in front of every text, so that no two keys share a preimage.
func (k Key) sum(purpose string) [32]byte {
	buf := make([]byte, 0, 64+len(k.Task)+len(purpose))
	buf = binary.LittleEndian.AppendUint64(buf, k.Seed)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(k.Task)))
	buf = append(buf, k.Task...)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(k.Sample))
	buf = append(buf, purpose...)
	return sha256.Sum256(buf)
}
