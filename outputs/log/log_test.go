package log_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// formats are the layouts that there are: with a head that has a checksum of its own, and without.
var formats = map[string]*log.Format[string]{
	"bare": {Magic: "bar\x01", Head: 12, SizeAt: 4, SumAt: 8, Max: 1 << 20},
	"head": {
		Magic: "hea\x01", Head: 24, MetaSizeAt: 4, SizeAt: 8, BatchAt: 12, SumAt: 16, HeadSumAt: 20, MaxMeta: 1 << 10, Max: 1 << 20,
		Parse: func(_, meta []byte) (string, error) { return string(meta), nil },
	},
}

// write lays frames with these payloads behind each other, and says where each begins and the last one ends.
func write(f *log.Format[string], payloads ...string) (data []byte, at []int64) {
	for _, payload := range payloads {
		var meta []byte
		if f.MetaSizeAt > 0 {
			meta = []byte("about " + payload)
		}
		frame := append(f.Begin(nil, meta), payload...)
		f.Finish(frame)
		at = append(at, int64(len(data)))
		data = append(data, frame...)
	}
	return data, append(at, int64(len(data)))
}

// read returns the payloads of whole frames, and the places of what is none.
func read(t *testing.T, f *log.Format[string], data []byte) (whole []string, broken []string) {
	t.Helper()
	at := int64(0)
	for part, err := range f.Parts(bytes.NewReader(data), 0, int64(len(data)), true) {
		if err != nil {
			t.Fatal(err)
		}
		if part.From != at || part.To <= at {
			t.Fatalf("a part from %d to %d behind %d", part.From, part.To, at)
		}
		at = part.To
		if part.Broken != nil {
			broken = append(broken, fmt.Sprint(part.From, "-", part.To))
		} else if f.MetaSizeAt > 0 && part.Frame.About != "about "+string(part.Payload) {
			t.Errorf("%q says that it is %q", part.Payload, part.Frame.About)
		} else {
			whole = append(whole, string(part.Payload))
		}
	}
	if at != int64(len(data)) {
		t.Errorf("parts end at %d of %d", at, len(data))
	}
	return whole, broken
}

func torn(t *testing.T, f *log.Format[string], data []byte) int64 {
	t.Helper()
	at, err := f.Torn(bytes.NewReader(data), 0, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Whatever bit is flipped, the frames around it are read, the place is named, and it counts as a torn end at the end alone.
func TestDamageIsNamed(t *testing.T) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			payloads := []string{"first", "second", "", "fourth"}
			data, at := write(f, payloads...)
			if whole, broken := read(t, f, data); !slices.Equal(whole, payloads) || broken != nil {
				t.Fatalf("%q, broken %v", whole, broken)
			}
			for place := range data {
				hit := slices.IndexFunc(at, func(from int64) bool { return from > int64(place) }) - 1
				bad := bytes.Clone(data)
				bad[place] ^= 0x10
				whole, broken := read(t, f, bad)
				if want := slices.Delete(slices.Clone(payloads), hit, hit+1); !slices.Equal(whole, want) {
					t.Errorf("byte %d: %q, want %q", place, whole, want)
				}
				if want := []string{fmt.Sprint(at[hit], "-", at[hit+1])}; !slices.Equal(broken, want) {
					t.Errorf("byte %d: broken %v, want %v", place, broken, want)
				}
				want := int64(len(data))
				if hit == len(payloads)-1 {
					want = at[hit]
				}
				if got := torn(t, f, bad); got != want {
					t.Errorf("byte %d: torn at %d, want %d", place, got, want)
				}
			}
		})
	}
}

func TestTornEnd(t *testing.T) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			data, at := write(f, "first", "second", "third")
			for end := at[2]; end < at[3]; end++ {
				for _, junk := range []string{"", "\x00\x00\x00\x00\x00", f.Magic + "and no more than that"} {
					want := at[2]
					if got := torn(t, f, append(bytes.Clone(data[:end]), junk...)); got != want {
						t.Errorf("cut at %d, with %q: torn at %d, want %d", end, junk, got, want)
					}
				}
			}
		})
	}
}

// Pages of one write may be lost in any order.
func TestTornWithinOneWrite(t *testing.T) {
	f := formats["head"]
	data, at := write(f, "first", "second", "third", "fourth")
	for i := 1; i < 4; i++ {
		f.Seal(data[at[i]:at[i+1]], at[i]-at[1])
	}
	data[at[1]+5] ^= 1
	if got := torn(t, f, data); got != at[1] {
		t.Errorf("torn at %d, want %d, where the write begins", got, at[1])
	}
	f.Seal(data[at[3]:], 0)
	if got := torn(t, f, data); got != int64(len(data)) {
		t.Errorf("with another write behind it: torn at %d of %d", got, len(data))
	}
	heads, err := f.Heads(bytes.NewReader(data), at[1], at[3], at[4])
	if err != nil || len(heads) != 1 || heads[0].About != "about third" {
		t.Errorf("Heads = %v, %v, want that of the third", heads, err)
	}
}

// failing is a file that fails where it is asked to.
type failing struct {
	disk.File
	full, unsynced bool
}

func (f *failing) WriteAt(p []byte, offset int64) (int, error) {
	if f.full {
		n, _ := f.File.WriteAt(p[:len(p)/2], offset)
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(p, offset)
}

func (f *failing) Sync() error {
	if f.unsynced {
		return syscall.EIO
	}
	return f.File.Sync()
}

func TestFileTakesBackWhatFails(t *testing.T) {
	for _, broken := range []failing{{full: true}, {unsynced: true}} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte("whole, torn"), 0o600); err != nil {
			t.Fatal(err)
		}
		made, err := disk.Make(path)
		if err != nil {
			t.Fatal(err)
		}
		under := &failing{File: made}
		f, err := log.New(under, int64(len("whole,")))
		if err != nil {
			t.Fatal(err)
		}
		if at, err := f.Commit([]byte("one,"), []byte("two,")); err != nil || at != 6 {
			t.Fatalf("Commit = %d, %v", at, err)
		}
		under.full, under.unsynced = broken.full, broken.unsynced
		_, err = f.Commit([]byte("three,"), []byte("four,"))
		if err == nil || broken.full && !strings.Contains(err.Error(), "no space left for "+path) {
			t.Errorf("Commit to a disk that fails: %v", err)
		}
		under.full, under.unsynced = false, false
		if _, again := f.Append([]byte("five,")); !errors.Is(again, err) && again.Error() != err.Error() {
			t.Errorf("afterwards: %v, want what the first was refused for, %v", again, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "whole,one,two," {
			t.Errorf("the file holds %q, %v", data, err)
		}
		if err := f.Sync(); err == nil {
			t.Error("a closed file was synced")
		}
	}
}

// Those who come while something is done go together the next time, and learn how it ended.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var batches []int
		hold := make(chan struct{})
		bad := errors.New("bad")
		group := log.NewGroup(func(batch []int) error {
			batches = append(batches, len(batch))
			<-hold
			if len(batches) == 2 {
				return bad
			}
			return nil
		})
		var wait sync.WaitGroup
		var errs [4]error
		for i := range errs {
			wait.Go(func() { errs[i] = group.Do(make([]int, i+1)...) })
			if i == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		close(hold)
		wait.Wait()
		if want := []int{1, 2 + 3 + 4}; !slices.Equal(batches, want) {
			t.Errorf("batches of %v, want %v", batches, want)
		}
		if errs != [4]error{nil, bad, bad, bad} {
			t.Errorf("errors %v", errs)
		}
	})
}
