package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/egress"
	"trajgen/sandbox/internal/guest"
)

// plan is a spec with everything resolved, ready to be opened.
type plan struct {
	spec   sandbox.Spec
	layout sandbox.Layout
	image  []string  // layers; nil means the host's toolchain
	from   *snapshot // nil is none
}

// plan validates a spec and resolves what it names.
func (n *backend) plan(ctx context.Context, spec sandbox.Spec) (*plan, error) {
	spec, err := spec.Complete(sandbox.Guarantees{Network: n.guarantees.Network, Images: n.opts.Images != nil, WritableSystem: true})
	if err != nil {
		return nil, err
	}
	p := &plan{spec: spec, layout: sandbox.Layout{Home: "/root", Tmp: "/tmp", Tests: guest.Tests}}
	switch {
	case spec.From != nil:
		from, ok := spec.From.(*snapshot)
		if !ok || from.backend != n {
			return nil, errors.New("the snapshot is of another backend")
		}
		p.from, p.layout.Workdir = from, from.workdir
		p.spec.Env = withDefaults(spec.Env, from.env)
	case spec.Image != "":
		err = n.planImage(ctx, p)
	case spec.Writable:
		p.layout.Workdir, err = imageWorkdir(spec.Workdir)
	default:
		p.layout.Workdir, err = hostWorkdir(spec.Workdir)
	}
	p.layout.Plain = sandbox.PlainEnv(p.spec.Env)
	if f := spec.ReadOnly; f != nil {
		p.layout.ReadOnly = "/" + f.Name
	}
	return p, err
}

// planImage finds the image, and takes its environment and working directory.
func (n *backend) planImage(ctx context.Context, p *plan) error {
	image, err := n.opts.Images.Find(ctx, p.spec.Image)
	if err != nil {
		return err
	}
	if len(image.Layers) == 0 {
		return fmt.Errorf("image %s: it has no layers", p.spec.Image)
	}
	p.image = image.Layers
	env := map[string]string{}
	for _, kv := range image.Env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	p.spec.Env = withDefaults(p.spec.Env, env)
	if p.spec.Bare {
		p.layout.Workdir = "/"
		return nil
	}
	p.layout.Workdir, err = imageWorkdir(cmp.Or(p.spec.Workdir, image.Workdir))
	return err
}

// withDefaults adds defaults for missing keys.
func withDefaults(values, defaults map[string]string) map[string]string {
	all := maps.Clone(defaults)
	if all == nil {
		return values
	}
	maps.Copy(all, values)
	return all
}

// CheckWorkdir implements Placer.
func (n *backend) CheckWorkdir(dir string, image bool) error {
	check := hostWorkdir
	if image {
		check = imageWorkdir
	}
	_, err := check(dir)
	return err
}

// imageWorkdir checks that a directory can be the working directory in an image.
func imageWorkdir(dir string) (string, error) {
	if dir == "" || dir == "/" {
		return "/workspace", nil
	}
	if !path.IsAbs(dir) {
		return "", fmt.Errorf("workdir %q is not absolute", dir)
	}
	dir = path.Clean(dir)
	top, _, _ := strings.Cut(dir[1:], "/")
	switch top {
	case "", "dev", "proc", guest.Program[1:], guest.Tests[1:]:
		return "", fmt.Errorf("workdir %q is not a place for work", dir)
	}
	return dir, nil
}

// hostWorkdir refuses directories that must not become writable, as the working directory is: verifiers run the programs and
// read the configuration there.
func hostWorkdir(dir string) (string, error) {
	if dir == "" {
		return "/workspace", nil
	}
	if !path.IsAbs(dir) {
		return "", fmt.Errorf("workdir %q is not absolute", dir)
	}
	dir = path.Clean(dir)
	top, _, _ := strings.Cut(dir[1:], "/")
	switch top {
	case "", "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "usr", guest.Program[1:], guest.Tests[1:]:
		return "", fmt.Errorf("workdir %q is not a place for work (as are /workspace, /home/..., /srv/... or a directory of its own)", dir)
	}
	return dir, nil
}

// likelyPorts are the ports that commands probably connect to, for guests that cannot catch all ports.
func likelyPorts(allow []string) []int64 {
	ports := []int64{80, 443}
	rules, _ := egress.Parse(allow) // Spec.Complete has reported the error
	for _, rule := range rules {
		for _, port := range rule.Ports() {
			if p := int64(port); p != 53 && !slices.Contains(ports, p) {
				ports = append(ports, p)
			}
		}
	}
	return ports
}
