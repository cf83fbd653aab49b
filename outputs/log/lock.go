package log

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"trajgen/outputs/log/disk"
)

// Lock takes the files in dir for this process, which is their one writer until it closes what is returned. The kernel gives
// them back however the process ends. The lock's file stays: removing it would let two writers hold locks on different files
// of one name.
func Lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, disk.Explain(path, err))
	}
	owner, err := waitFor(f)
	if err != nil {
		f.Close()
		if !errors.Is(err, disk.ErrLocked) {
			return nil, fmt.Errorf("lock %s: %w (want a file system with locks)", dir, err)
		}
		return nil, fmt.Errorf("%w: %s is being written by %s", disk.ErrLocked, dir, cmp.Or(owner, unnamed))
	}
	// Who holds it is for people to read; the lock works without.
	host, _ := os.Hostname()
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, ownerForm+"\n", os.Getpid(), host), 0)
		if err != nil && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, disk.Explain(path, err))
		}
	}
	return f, nil
}

// ownerForm is what stands in the file.
const ownerForm = "process %d on %s"

// waitFor takes the lock. One that was killed while it started a program has left the lock to the process that was about
// to become that program, for a moment; who is refused otherwise learns the owner.
func waitFor(f *os.File) (owner string, err error) {
	for range 500 {
		if err = disk.Lock(f); !errors.Is(err, disk.ErrLocked) {
			return "", err
		}
		if owner = ownerOf(f); !gone(owner) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return owner, err
}

// Writer says who is writing the files in dir: empty when no process is.
func Writer(dir string) (owner string, err error) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("lock of %s: %w", dir, err)
	}
	defer f.Close()
	if owner = ownerOf(f); gone(owner) { // whose lock must not be tried: that could keep a run from beginning
		return "", nil
	}
	if err := disk.Lock(f); !errors.Is(err, disk.ErrLocked) {
		return "", err
	}
	return cmp.Or(owner, unnamed), nil
}

const unnamed = "a process that did not say its name"

func ownerOf(f *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 200))
	return strings.TrimSpace(string(text))
}

// gone says that the owner was a process of this machine, and is none any more.
func gone(owner string) bool {
	var pid int
	var on string
	if n, _ := fmt.Sscanf(owner, ownerForm, &pid, &on); n < 2 || pid <= 1 {
		return false
	}
	host, err := os.Hostname()
	return err == nil && host == on && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
