package broker

import (
	"os"
	"path/filepath"

	"trajgen/sandbox/internal/guest"
)

// HostImage is what sandboxes may see of this machine.
type HostImage struct {
	Links  []guest.Link
	Shared []string // directories and files, shown read-only at the same path
	Files  []guest.Write
}

// Host finds what exists on this machine; extra are further directories.
func Host(extra []string) (HostImage, error) {
	var h HostImage
	for _, dir := range rootDirs {
		if target, err := os.Readlink(dir); err == nil {
			h.Links = append(h.Links, guest.Link{Path: dir, Target: target})
		} else if isDir(dir) {
			h.Shared = append(h.Shared, dir)
		}
	}
	for _, pattern := range append(sharedDirs[:len(sharedDirs):len(sharedDirs)], extra...) {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return h, err
		}
		for _, dir := range matches {
			if isDir(dir) {
				h.Shared = append(h.Shared, dir)
			}
		}
	}
	h.Files = append(h.Files, made...)
	for _, name := range copiedFiles {
		if content, ok := public(name); ok {
			h.Files = append(h.Files, guest.Write{Path: name, Mode: 0o644, Data: content})
		}
	}
	h.Links = append(h.Links, guest.Link{Path: "/etc/mtab", Target: "/proc/self/mounts"},
		guest.Link{Path: "/etc/localtime", Target: "/usr/share/zoneinfo/Etc/UTC"})
	return h, nil
}
