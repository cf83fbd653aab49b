package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"trajgen/sandbox"
)

// Paths of the agent in containers, on a volume that is mounted read-only.
const (
	agentDir  = "/.trajgen"
	agentPath = agentDir + "/agent"
)

// agents are the volumes that hold agents, one for each architecture, and read-only folders, by their digests. They belong to
// this backend: another runner may be another version of this program.
type agents struct {
	backend *backend

	mu      sync.Mutex // held while a volume is filled
	volumes map[string]*volume
}

// volume holds an agent, or a read-only folder, and nothing else.
type volume struct {
	name string
	at   string // where containers have it
	// nothing is an image without programs. The volume was filled through it, and the self-test runs in it.
	nothing *image
}

// find returns the volume with the agent for an architecture, which it makes on first use.
func (a *agents) find(ctx context.Context, goarch string) (*volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.volumes[goarch]; v != nil {
		return v, nil
	}
	program, err := sandbox.Agent(goarch)
	if err == nil {
		err = static(program)
	}
	if err != nil {
		return nil, err
	}
	nothing, err := a.importNothing(ctx, goarch)
	var v *volume
	if err == nil {
		v, err = a.fill(ctx, goarch, agentDir, nothing, []sandbox.FileWrite{{Path: path.Base(agentPath), Mode: 0o555, Data: program}})
	}
	if err != nil {
		return nil, fmt.Errorf("give the agent to the engine: %w", err)
	}
	return v, nil
}

// folder returns the volume with a read-only folder, which it makes on first use.
func (a *agents) folder(ctx context.Context, f *sandbox.Folder, nothing *image) (*volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.volumes[f.Digest]; v != nil {
		return v, nil
	}
	v, err := a.fill(ctx, f.Digest, "/"+f.Name, nothing, f.Files)
	if err != nil {
		return nil, fmt.Errorf("give the folder %s to the engine: %w", f.Name, err)
	}
	return v, nil
}

// fill makes a volume of files.
func (a *agents) fill(ctx context.Context, key, at string, nothing *image, files []sandbox.FileWrite) (*volume, error) {
	b := a.backend
	v := &volume{name: "trajgen-" + b.label + "-" + key, at: at, nothing: nothing}
	labels := b.labels("")
	if _, err := b.engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: v.name, Labels: labels}); err != nil {
		return nil, err
	}
	// A container that is never started gives access to the volume. Finish the calls: a cancelled one would leave the
	// container.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTime)
	defer cancel()
	created, err := b.engine.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config:     &container.Config{Image: nothing.id, Cmd: []string{agentPath}, Labels: labels},
		HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{v.mount(false)}},
	})
	if err != nil {
		return nil, err
	}
	_, err = b.engine.CopyToContainer(ctx, created.ID, client.CopyToContainerOptions{DestinationPath: at, Content: archiveOf(files)})
	if err = errors.Join(err, remove(ctx, b.engine, created.ID)); err != nil {
		return nil, err
	}
	a.volumes[key] = v
	return v, nil
}

// importNothing makes an image without programs, so that nothing has to be pulled for the agent and the self-test.
func (a *agents) importNothing(ctx context.Context, goarch string) (*image, error) {
	b := a.backend
	content := archive(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil)
	reference := "trajgen-nothing-" + b.label + ":" + goarch
	response, err := b.engine.ImageImport(ctx, client.ImageImportSource{Source: content, SourceName: "-"}, reference, client.ImageImportOptions{
		Changes: []string{"LABEL " + labelInstance + "=" + b.label}, Platform: ocispec.Platform{OS: "linux", Architecture: goarch},
	})
	if err != nil {
		return nil, err
	}
	defer response.Close()
	said, err := io.ReadAll(response)
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(said), `"error"`) {
		return nil, fmt.Errorf("import an image: %s", bytes.TrimSpace(said))
	}
	m, err := b.images.inspect(reference)
	if err == nil {
		m.goarch = goarch
	}
	return m, err
}

// static refuses a program that needs libraries: images may not have them.
func static(program []byte) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("read the agent: %w", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("this program is its own agent and needs libraries, which an image may not have: build it with scripts/build, or with CGO_ENABLED=0")
		}
	}
	return nil
}

// mount returns the mount of the volume in a container.
func (v *volume) mount(readOnly bool) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Source: v.name, Target: v.at, ReadOnly: readOnly, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
}

// archive is a tarball of one file or directory.
func archive(header *tar.Header, content []byte) io.Reader {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	enter(w, header, content)
	_ = w.Close()
	return &buffer
}

// enter adds to a tarball in memory: writing to a buffer cannot fail, and the headers are ours.
func enter(w *tar.Writer, header *tar.Header, content []byte) {
	header.Size = int64(len(content))
	_ = w.WriteHeader(header)
	_, _ = w.Write(content)
}

// archiveOf is a tarball of files.
func archiveOf(files []sandbox.FileWrite) io.Reader {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, f := range files {
		enter(w, &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: int64(f.Perm())}, f.Data)
	}
	_ = w.Close()
	return &buffer
}
