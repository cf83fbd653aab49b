//go:build linux

package images_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
)

// helpers are what this program does in a process of its own.
var helpers = map[string]func(args []string) (any, error){
	"find":    helpFind,
	"overlay": helpOverlay,
	"full":    helpFull,
	"ramfs":   helpRAMFS,
}

func TestMain(m *testing.M) {
	if name := os.Getenv("IMAGES_TEST_HELPER"); name != "" {
		result, err := helpers[name](os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helper is a process that runs a helper, in a mount namespace of its own if that is asked for.
func helper(t *testing.T, name string, mounts bool, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "IMAGES_TEST_HELPER="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if mounts {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
	}
	return cmd
}

// help runs a helper to its end and decodes what it says.
func help(t *testing.T, name string, mounts bool, result any, args ...string) error {
	t.Helper()
	cmd := helper(t, name, mounts, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); ok {
			return errors.New(strings.TrimSpace(errOut.String()))
		}
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return nil
}

// helpFind finds an image in a store, and keeps the store open until its standard input ends.
func helpFind(args []string) (any, error) {
	store, err := images.Open(images.Options{Dir: args[0]})
	if err != nil {
		return nil, err
	}
	image, err := store.Find(context.Background(), args[1])
	if err != nil {
		return nil, err
	}
	if len(args) > 2 {
		fmt.Println("found")
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return image, store.Close()
}

// privately keeps mounts from spreading to where this process came from.
func privately() error { return syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") }

// helpOverlay mounts the layers of a store and returns the tree that a sandbox would see.
func helpOverlay(args []string) (any, error) {
	dir, mountpoint, empty, layers := args[0], args[1], args[2], args[3:]
	if err := privately(); err != nil {
		return nil, err
	}
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	options := "userxattr,lowerdir=" + strings.Join(append(layers, empty), ":")
	if err := syscall.Mount("overlay", mountpoint, "overlay", syscall.MS_RDONLY, options); err != nil {
		return nil, fmt.Errorf("mount overlay %s: %w", options, err)
	}
	return readTree(mountpoint)
}

// helpFull opens a store on a file system of a size and finds an image there.
func helpFull(args []string) (any, error) {
	if err := privately(); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", args[0], "tmpfs", 0, "size="+args[1]); err != nil {
		return nil, err
	}
	// In its namespace an ordinary user is root, but can give files to nobody.
	store, err := images.Open(images.Options{Dir: args[0] + "/store", Unprivileged: args[3] != "0"})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	_, err = store.Find(context.Background(), args[2])
	if err == nil {
		return nil, errors.New("it found room")
	}
	left, errLeft := os.ReadDir(args[0] + "/store/tmp")
	layers, errLayers := os.ReadDir(args[0] + "/store/layers")
	return []string{err.Error(), fmt.Sprint(len(left), len(layers))}, errors.Join(errLeft, errLayers)
}

// helpRAMFS opens a store where files have no attributes.
func helpRAMFS(args []string) (any, error) {
	if err := privately(); err != nil {
		return nil, err
	}
	if err := syscall.Mount("ramfs", args[0], "ramfs", 0, ""); err != nil {
		return nil, err
	}
	_, err := images.Open(images.Options{Dir: args[0] + "/store"})
	return fmt.Sprint(err), nil
}

// seen returns an image's files as a sandbox sees them.
func seen(t *testing.T, store *images.Store, image sandbox.Image) tree {
	t.Helper()
	var files tree
	args := append([]string{store.Dir(), t.TempDir(), t.TempDir()}, image.Layers...)
	if err := help(t, "overlay", true, &files, args...); err != nil {
		t.Fatal(err)
	}
	return files
}
