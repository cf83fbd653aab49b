package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
	"trajgen/sandbox/carry"
	"trajgen/sandbox/internal/self"
)

// nameFiles say what names lead to. Engines make them. Docker gives them to all containers of a network, so what the agent changes
// in them holds for its verifier, too; podman gives others files without the names of the services.
var nameFiles = []string{"/etc/hosts", "/etc/resolv.conf"}

const mostNames = 64 << 10 // bytes of such a file

// hostsOf are the names of a sandbox's loopback address, as engines take them.
func hostsOf(spec sandbox.Spec) (hosts []string) {
	for _, s := range spec.Services {
		hosts = append(hosts, s.Name+":127.0.0.1")
	}
	for _, name := range spec.Hosts {
		hosts = append(hosts, name+":127.0.0.1")
	}
	return hosts
}

// keepNames reads the files before commands can change them, for those who will share the network.
func (x *box) keepNames(ctx context.Context) error {
	for _, name := range nameFiles {
		data, _, err := x.Files().Read(ctx, name, 0, mostNames)
		if err == nil {
			x.names = append(x.names, sandbox.FileWrite{Path: name, Data: data})
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// setNames writes the files of another box where they differ, in place: they are mounts.
func (x *box) setNames(ctx context.Context, from *box) error {
	for _, f := range from.names {
		if has, _, err := x.Files().Read(ctx, f.Path, 0, mostNames); err == nil && bytes.Equal(has, f.Data) {
			continue
		}
		args := slices.Concat([]string{agentPath, self.Helper}, carry.Overwrite(f.Path, f.Data))
		if err := x.backend.engine.exec(ctx, x.container, args); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

// exec runs a command in a container as root, whoever the user of its image is.
func (e *engine) exec(ctx context.Context, container string, args []string) error {
	made, err := e.ExecCreate(ctx, container, client.ExecCreateOptions{User: "0", Cmd: args, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return err
	}
	attached, err := e.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer attached.Close()
	defer context.AfterFunc(ctx, attached.Close)()
	said := sandbox.NewCapture(0, longestError/4)
	if _, err := stdcopy.StdCopy(said, said, attached.Reader); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	ended, err := e.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	if err == nil && ended.ExitCode != 0 {
		err = fmt.Errorf("status %d, %q", ended.ExitCode, said.Bytes())
	}
	return err
}
