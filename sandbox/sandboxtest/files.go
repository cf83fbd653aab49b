package sandboxtest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"trajgen/sandbox"
)

// wantError checks what a file operation failed with.
func (k hands) wantError(what string, err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Errorf("%s: got %v, want %v", what, err, want)
	}
	if errors.Is(err, sandbox.ErrGone) {
		k.Errorf("%s: %v is about the request, not about the sandbox", what, err)
	}
	if _, ok := errors.AsType[*fs.PathError](err); !ok && err != nil {
		k.Errorf("%s: %v (%T) is not a PathError", what, err, err)
	}
}

func (k *kit) readError(path string) error {
	k.Helper()
	_, _, err := k.sb().Files().Read(k.Context(), path, 0, 100)
	return err
}

func (k *kit) remove(paths ...string) {
	k.Helper()
	if err := k.sb().Files().Remove(k.Context(), paths...); err != nil {
		k.Fatalf("remove: %v", err)
	}
}

// fileCases are about Files.
var fileCases = []testCase{
	{name: "a name that is too long is called so", check: func(k *kit) {
		long, files := strings.Repeat("n", 300), k.sb().Files()
		_, statErr := files.Stat(k.Context(), long)
		_, _, readErr := files.Read(k.Context(), long, 0, 1)
		_, listErr := files.List(k.Context(), long)
		_, dirErr := k.sb().Start(k.Context(), sandbox.Command{Args: []string{"true"}, Dir: long})
		_, programErr := k.sb().Start(k.Context(), sandbox.Command{Args: []string{long}})
		_, pathErr := k.sb().Start(k.Context(), sandbox.Command{Args: []string{"/" + long}})
		for what, err := range map[string]error{
			"stat": statErr, "read": readErr, "list": listErr, "directory": dirErr, "program": programErr, "path of a program": pathErr,
			"write": files.Write(k.Context(), sandbox.FileWrite{Path: long}), "replace": files.Write(k.Context(), sandbox.FileWrite{Path: "d/" + long, Replace: true}),
			"directory of a file": files.Write(k.Context(), sandbox.FileWrite{Path: long + "/f"}), "remove": files.Remove(k.Context(), long),
		} {
			if err == nil || !strings.Contains(err.Error(), "file name too long") {
				k.Errorf("%s: got %v", what, err)
			}
		}
	}},
	{name: "write and read", check: func(k *kit) {
		large := bytes.Repeat([]byte("large "), 1<<20)
		files := []sandbox.FileWrite{
			{Path: "text", Data: []byte("text\n")}, {Path: "binary", Data: []byte("\x00\xff\xfe")}, {Path: "zero"},
			{Path: "made/on/the/way", Data: []byte("x")}, {Path: k.sb().Layout().Tmp + "/absolute", Data: []byte("y")},
			{Path: "large", Data: large}, {Path: "after", Data: []byte("z")}, {Path: "sp ace\n\"'", Data: []byte("odd")},
		}
		k.write(files...)
		for _, f := range files {
			if got := k.read(f.Path); got != string(f.Data) {
				k.Errorf("%q: got %d bytes, want %d", f.Path, len(got), len(f.Data))
			}
		}
		equal(k, "seen by commands", k.sh("cat text made/on/the/way $TMPDIR/absolute"), "text\nxy")
		k.sh("printf theirs > back")
		equal(k, "written by commands", k.read("back"), "theirs")
	}},
	{name: "100 MB", check: func(k *kit) {
		data := bytes.Repeat([]byte("0123456789"), 10<<20)
		k.write(sandbox.FileWrite{Path: "big", Data: data})
		got, info, err := k.sb().Files().Read(k.Context(), "big", 0, 1<<40)
		if err != nil || !bytes.Equal(got, data) || info.Size != int64(len(data)) {
			k.Errorf("got %d bytes, %v", len(got), err)
		}
		k.sh("rm big")
	}},
	{name: "many small files", check: func(k *kit) {
		var files []sandbox.FileWrite
		for i := range 500 {
			files = append(files, sandbox.FileWrite{Path: "many/" + strings.Repeat("n", i%50) + string(rune('a'+i%26)) + "/" + strings.Repeat("f", 1+i/50), Data: bytes.Repeat([]byte{byte(i)}, 1000)})
		}
		k.write(files...)
		equal(k, "content", k.read(files[499].Path), string(files[499].Data))
	}},
	{name: "offsets", check: func(k *kit) {
		k.write(sandbox.FileWrite{Path: "f", Data: []byte("0123456789")})
		for _, c := range []struct {
			offset, limit int64
			want          string
		}{{0, 4, "0123"}, {8, 100, "89"}, {10, 5, ""}, {99, 5, ""}, {3, 0, ""}} {
			got, info, err := k.sb().Files().Read(k.Context(), "f", c.offset, c.limit)
			if err != nil || string(got) != c.want || info.Size != 10 {
				k.Errorf("read from %d up to %d: got %q, size %d, %v", c.offset, c.limit, got, info.Size, err)
			}
		}
		_, _, err := k.sb().Files().Read(k.Context(), "f", -1, 1)
		k.wantError("negative offset", err, fs.ErrInvalid)
	}},
	{name: "modes", check: func(k *kit) {
		k.write(sandbox.FileWrite{Path: "default"}, sandbox.FileWrite{Path: "run", Mode: 0o755, Data: []byte("#!/bin/sh\necho ran\n")}, sandbox.FileWrite{Path: "open", Mode: 0o666})
		equal(k, "modes", k.sh("stat -c %a default run open"), "644\n755\n666\n")
		equal(k, "a script", string(k.run(sandbox.Command{Args: []string{"./run"}}).Stdout.Bytes()), "ran\n")
		k.write(sandbox.FileWrite{Path: "run", Mode: 0o600, Data: []byte("#!/bin/sh\necho again\n")})
		equal(k, "kept", k.sh("stat -c %a run; ./run"), "755\nagain\n")
		k.write(sandbox.FileWrite{Path: "run", Mode: 0o600, Replace: true})
		equal(k, "replaced", k.sh("stat -c %a run; ls -A | wc -l"), "600\n3\n")
	}},
	{name: "stat and list", check: func(k *kit) {
		k.sh("mkdir d && printf abc > d/b && ln -s b d/c && mkdir d/a && mkfifo d/p && touch -d @1000000000 d/b")
		info, err := k.sb().Files().Stat(k.Context(), "d/c")
		if err != nil || info.Name != "b" || info.Path != path.Join(k.sb().Layout().Workdir, "d/b") || info.Size != 3 || !info.Mode.IsRegular() || info.ModTime.Unix() != 1e9 {
			k.Errorf("got %+v, %v", info, err)
		}
		entries, err := k.sb().Files().List(k.Context(), "d")
		if err != nil {
			k.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name+" "+e.Mode.Type().String())
		}
		equal(k, "entries", strings.Join(got, ","), "a d---------,b ----------,c L---------,p p---------")
		info, err = k.sb().Files().Stat(k.Context(), ".")
		equal(k, "the working directory", info.Path, k.sb().Layout().Workdir)
		if err != nil || !info.Mode.IsDir() {
			k.Errorf("got %+v, %v", info, err)
		}
		entries, err = k.sb().Files().List(k.Context(), "d/a")
		if err != nil || len(entries) != 0 {
			k.Errorf("empty directory: got %v, %v", entries, err)
		}
	}},
	{name: "file errors", check: func(k *kit) {
		k.sh("mkdir d && mkfifo fifo && echo x > file")
		k.wantError("missing", k.readError("nowhere"), fs.ErrNotExist)
		k.wantError("missing, absolute", k.readError(k.sb().Layout().Tmp+"/nowhere"), fs.ErrNotExist)
		k.wantError("through a file", k.readError("file/below"), syscall.ENOTDIR)
		k.wantError("directory", k.readError("d"), syscall.EISDIR)
		k.wantError("fifo", k.readError("fifo"), sandbox.ErrNotRegular)
		_, err := k.sb().Files().Stat(k.Context(), "nowhere")
		k.wantError("stat", err, fs.ErrNotExist)
		_, err = k.sb().Files().List(k.Context(), "file")
		k.wantError("list a file", err, syscall.ENOTDIR)
		for what, c := range map[string]struct {
			file sandbox.FileWrite
			want error
		}{
			"onto a directory": {sandbox.FileWrite{Path: "d"}, syscall.EISDIR}, "onto a fifo": {sandbox.FileWrite{Path: "fifo"}, sandbox.ErrNotRegular},
			"below a file": {sandbox.FileWrite{Path: "file/x"}, syscall.ENOTDIR},
		} {
			k.wantError(what, k.sb().Files().Write(k.Context(), c.file), c.want)
		}
		equal(k, "unharmed", k.sh("cat file; ls"), "x\nd\nfifo\nfile\n")
	}},
	{name: "write follows links inside", check: func(k *kit) {
		k.sh("mkdir real && echo old > real/f && ln -s real/f link && ln -s real/new dangling && ln -s $PWD/real dir && ln -s loop loop")
		k.write(sandbox.FileWrite{Path: "link", Data: []byte("1")}, sandbox.FileWrite{Path: "dangling", Data: []byte("2")}, sandbox.FileWrite{Path: "dir/third", Data: []byte("3")})
		equal(k, "content", k.sh("cat real/f real/new real/third; [ -L link ] && [ -L dangling ] && echo; ls real"), "123\nf\nnew\nthird\n")
		if err := k.sb().Files().Write(k.Context(), sandbox.FileWrite{Path: "loop"}); err == nil {
			k.Error("a loop was written through")
		}
	}},
	{name: "write is atomic", check: func(k *kit) {
		k.write(sandbox.FileWrite{Path: "f", Data: []byte("old")})
		k.sh("exec 5<f; sleep 66.1 <&5 >/dev/null 2>&1 & ln f second")
		k.write(sandbox.FileWrite{Path: "f", Data: []byte("new")})
		equal(k, "the other name", k.read("second"), "old")
	}},
	{name: "replace removes what was planted", check: func(k *kit) {
		k.sh("mkdir -p victim planted/full/of && touch planted/full/of/things victim/safe && ln -s victim/safe link && ln -s victim through && mkfifo fifo && echo x > notdir")
		for _, name := range []string{"link", "planted", "through/f", "fifo", "notdir/f", "fresh/f"} {
			k.write(sandbox.FileWrite{Path: name, Data: []byte(name), Replace: true})
			equal(k, name, k.read(name), name)
		}
		equal(k, "victim", k.sh("ls victim; cat victim/safe; find . -type l"), "safe\n")
	}},
	{name: "the verifier's directory", check: func(k *kit) {
		tests := k.sb().Layout().Tests
		// A link in its place, or in it where it is there from the start.
		k.sh("mkdir -p evil && touch evil/conftest.py; ln -s $PWD/evil " + tests)
		k.remove(tests)
		k.write(sandbox.FileWrite{Path: tests + "/test.py", Data: []byte("1"), Replace: true})
		equal(k, "files", k.sh("ls -A "+tests+"; ls evil"), "test.py\nconftest.py\n")
		k.sh("cd " + tests + " && mkdir -p a/b .hidden && touch a/b/c .hidden/d .removed-1~ && i=0; while [ $i -lt 40 ]; do d=$d/x; i=$((i+1)); done; mkdir -p ./$d; chmod 000 a .")
		k.remove(tests + "/.")
		k.remove(tests+"/", tests, "nowhere")
		if entries, err := k.sb().Files().List(k.Context(), tests); len(entries) != 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.Errorf("left: got %v, %v", entries, err)
		}
		k.write(sandbox.FileWrite{Path: tests + "/deep/again.py", Data: []byte("2"), Replace: true})
		equal(k, "written again", k.read(tests+"/deep/again.py"), "2")
	}},
	{name: "device and proc files are refused", isolation: true, check: func(k *kit) {
		k.sh("ln -s /proc/self/environ leak; ln -s /proc/1/root out")
		for _, name := range []string{"/dev/null", "/dev/zero", "/proc/self/environ", "/proc/1/environ", "/proc/cpuinfo", "leak", "/dev/stdin"} {
			if err := k.readError(name); err == nil || errors.Is(err, sandbox.ErrGone) {
				k.Errorf("read %s: got %v", name, err)
			}
			if err := k.sb().Files().Write(k.Context(), sandbox.FileWrite{Path: name, Data: []byte("0")}); err == nil {
				k.Errorf("write %s worked", name)
			}
		}
		k.wantError("device", k.readError("/dev/zero"), sandbox.ErrNotRegular)
		k.wantError("proc", k.readError("/proc/cpuinfo"), sandbox.ErrNotRegular)
		if _, err := k.sb().Files().List(k.Context(), "out"); err == nil {
			k.Error("listed through a magic link")
		}
	}},
	{name: "remove", check: func(k *kit) {
		k.sh("mkdir -p victim tree/a/b shut/in/deep empty && touch victim/safe tree/f tree/a/b/g shut/in/deep/h file" +
			" && ln -s ../victim tree/out && ln -s $PWD/victim tree/a/out && ln -s victim link && ln -s tree through && ln -s nowhere dangling" +
			" && mkfifo tree/p && chmod 000 shut/in/deep shut/in shut tree/a/b tree/f && touch kept")
		k.remove("through/f", "tree", "shut/", "empty/.", "file", "link", "dangling", "nowhere", "nowhere/below", "nowhere/..")
		equal(k, "left", k.sh("ls -A; ls victim"), "kept\nthrough\nvictim\nsafe\n")
		k.remove()
		k.remove("victim/../kept", "through", "./victim/safe", k.sb().Layout().Workdir+"/victim")
		equal(k, "left", k.sh("ls -A"), "")
	}},
	{name: "remove what is deep or broad", check: func(k *kit) {
		k.sh("i=0; while [ $i -lt 150 ]; do d=$d/dddddddd; i=$((i+1)); done; mkdir -p ./$d && touch ./$d/f")
		k.sh("mkdir -p broad/.removed-1~ deep/x && mv dddddddd deep/x/ && touch deep/.removed-1~")
		// A busy disk needs its time for thousands of files.
		equal(k, "code", k.runIn(k.sb(), sh("cd broad && i=0 && while [ $i -lt 3000 ]; do : > $i; i=$((i+1)); done"), time.Minute).Exit.Code, 0)
		k.remove("deep", "broad")
		equal(k, "left", k.sh("ls -A"), "")
	}},
	{name: "remove refuses", check: func(k *kit) {
		k.sh("mkdir d && touch file safe")
		for _, name := range []string{"/", "/.", "//", "../../../../../../../../../../../../..", k.sb().Layout().Workdir + "/../../../../../../../../../../.."} {
			k.wantError("root as "+name, k.sb().Files().Remove(k.Context(), name), fs.ErrPermission)
		}
		k.wantError("through a file", k.sb().Files().Remove(k.Context(), "file/below"), syscall.ENOTDIR)
		if err := k.sb().Files().Remove(k.Context(), "d", "", "safe"); err == nil {
			k.Error("nothing was removed without an error")
		}
		equal(k, "left", k.sh("ls -A"), "file\nsafe\n")
	}},
	{name: "remove and mounts", isolation: true, check: func(k *kit) {
		k.sh("ln -s /usr/bin bin")
		names := []string{"/proc", "/proc/1", "/proc/self/root", "/dev/pts", "/.trajgen"}
		if k.backend.Guarantees().FixedSystem {
			names = append(names, "/usr", "/usr/bin/env", "bin/env", "/dev/null", "/workspace", "/tmp", "/etc", "/etc/passwd", "/bin")
		}
		for _, name := range names {
			if err := k.sb().Files().Remove(k.Context(), name); err == nil || errors.Is(err, sandbox.ErrGone) {
				k.Errorf("remove %s: got %v", name, err)
			}
		}
		equal(k, "still there", k.sh("/usr/bin/env echo fine; [ -e /proc/self/stat ] && ls -d /dev/pts"), "fine\n/dev/pts\n")
	}},
	{name: "remove stays inside", check: func(k *kit) {
		dir := k.TempDir()
		if err := os.WriteFile(dir+"/safe", nil, 0o666); err != nil {
			k.Fatal(err)
		}
		k.sh("mkdir tree; ln -s " + dir + " out; ln -s " + dir + " tree/out; ln -s ../../../../../../../../../../../.." + dir + " dots")
		for _, name := range []string{dir, dir + "/safe", "out/safe", "dots/safe", "out/.", "dots/../" + path.Base(dir), "tree", "out", "dots"} {
			_ = k.sb().Files().Remove(k.Context(), name)
		}
		if _, err := os.Stat(dir + "/safe"); err != nil {
			k.Error(err)
		}
		equal(k, "left", k.sh("ls -A"), "")
	}},
	{name: "links do not lead out", check: func(k *kit) {
		dir := k.TempDir()
		k.sh("ln -s " + dir + " out; ln -s ../../../../../../../../../../../.." + dir + " dots")
		for _, name := range []string{dir + "/planted", "out/planted", "dots/planted", "../../../../../../../../../../../.." + dir + "/planted"} {
			_ = k.sb().Files().Write(k.Context(), sandbox.FileWrite{Path: name, Data: []byte("x")})
			_ = k.sb().Files().Write(k.Context(), sandbox.FileWrite{Path: name, Data: []byte("x"), Replace: true})
		}
		nothingIn(k, dir)
	}},
}
