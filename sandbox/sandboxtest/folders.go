package sandboxtest

import (
	"fmt"
	"io/fs"
	"slices"
	"time"

	"trajgen/sandbox"
)

// folderCases are about Spec.ReadOnly. What no backend mounts, it writes, and a change of it is found.
var folderCases = []testCase{
	{name: "a read-only folder", check: func(k *kit) {
		f := sandbox.NewFolder("suite-folder",
			sandbox.FileWrite{Path: "a/manual", Data: []byte("read\n")},
			sandbox.FileWrite{Path: "a/scripts/run", Data: []byte("#!/bin/sh\necho ran\n"), Mode: 0o755},
		)
		k.holds(k.open(sandbox.Spec{ReadOnly: f}), f)
		k.holds(k.open(sandbox.Spec{ReadOnly: f}), f)
		equal(k, "without", k.sb().Layout().ReadOnly, "")
	}},
	{name: "a read-only folder and snapshots", snapshots: true, check: func(k *kit) {
		f := sandbox.NewFolder("suite-folder", sandbox.FileWrite{Path: "a/manual", Data: []byte("read\n")}, sandbox.FileWrite{
			Path: "a/scripts/run", Data: []byte("#!/bin/sh\necho ran\n"), Mode: 0o755,
		})
		sb := k.open(sandbox.Spec{ReadOnly: f})
		k.shIn(sb, "echo kept > kept")
		s := k.snapshot(sb)
		k.holds(sb, f)
		fork := k.open(sandbox.Spec{From: s, ReadOnly: f})
		equal(k, "in a fork", k.shIn(fork, "cat kept"), "kept\n")
		k.holds(fork, f)
		equal(k, "in a fork without", k.shIn(k.fork(s), "cat kept; [ ! -e /suite-folder/a ] || echo seen"), "kept\n")
	}},
}

// folderAttempts change the folder at $1, or put another one in its place. Each exits 0 when it worked.
var folderAttempts = []string{
	`echo x > "$1/a/manual"`, `touch "$1/new"`, `mkdir "$1/new"`, `ln -s /tmp "$1/new"`, `rm "$1/a/manual"`,
	`rm -rf "$1/a"`, `mv "$1/a" "$1/b"`,
	`mv "$1/a" /tmp/taken`, `mv "$1" "$1.old"`, `mv "$1" /tmp/taken`, `rmdir "$1"`, `rm -rf "$1"`,
	`chmod 777 "$1/a/manual" && echo x > "$1/a/manual"`,
	`mount -o remount,rw "$1"`, `mount -o remount,bind,rw "$1"`, `umount "$1"`, `umount -l "$1"`,
	`mount --bind /tmp "$1"`, `mount -t tmpfs x "$1"`,
	`unshare -m sh -c 'mount -t tmpfs x "$1"' sh "$1"`,
}

// holds checks that a folder is in a sandbox and stays as it is.
func (k *kit) holds(sb sandbox.Sandbox, f *sandbox.Folder) {
	k.Helper()
	at := sb.Layout().ReadOnly
	look := fmt.Sprintf(`cat "%s/a/manual"; "%s/a/scripts/run"`, at, at)
	equal(k, "the folder", k.shIn(sb, look), "read\nran\n")
	k.differs(sb, f)
	if !k.backend.Guarantees().FixedFolder {
		k.shIn(sb, fmt.Sprintf(`chmod -R u+w "%s"; echo worse > "%s/a/manual"; rm "%s/a/scripts/run"`, at, at, at))
		k.differs(sb, f, "a/manual", "a/scripts/run")
		return
	}
	if k.backend.Guarantees().Isolation["files"] == "own" {
		equal(k, "its place", at, "/"+f.Name)
	}
	for _, script := range folderAttempts {
		if r := k.runIn(sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script, "sh", at}}, 20*time.Second); r.Exit.Code == 0 {
			k.Errorf("%s worked", script)
		}
	}
	if err := sb.Files().Write(k.Context(), sandbox.FileWrite{Path: at + "/a/manual"}); err == nil {
		k.Error("a file in it was written")
	}
	if err := sb.Files().Remove(k.Context(), at); err == nil {
		k.Error("it was removed")
	}
	equal(k, "the folder after all that", k.shIn(sb, look), "read\nran\n")
	k.differs(sb, f)
	if info, err := sb.Files().Stat(k.Context(), at+"/a/scripts/run"); err != nil || info.Mode&0o777 != fs.FileMode(0o555) {
		k.Errorf("mode: got %v, %v", info.Mode, err)
	}
}

// differs checks which files of a folder are found to have changed.
func (k *kit) differs(sb sandbox.Sandbox, f *sandbox.Folder, want ...string) {
	k.Helper()
	if got, err := f.Changed(k.Context(), sb); err != nil || !slices.Equal(got, want) {
		k.Errorf("changed: got %q, %v, want %q", got, err, want)
	}
}
