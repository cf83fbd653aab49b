package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"trajgen/tools/internal/chars"
	"trajgen/tools/skills"
)

// git reads a skill of a repository, given as URL@REF, with git, which gets no settings of this machine, runs nothing of the
// repository's, and follows no redirects.
func (s Sources) git(ctx context.Context, address, which string) (*skills.Skill, error) {
	// An @ in front of the host is a user's name.
	ref := ""
	if at := strings.LastIndex(address, "@"); at > strings.LastIndex(address, "/") {
		address, ref = address[:at], address[at+1:]
	}
	allow := "https"
	switch scheme, _, _ := strings.Cut(address, ":"); scheme {
	case "http", "https":
		if _, err := s.Guard.Check(address); err != nil {
			return nil, err
		}
		allow = scheme
	case "file": // a repository of this machine, which the user names
		allow = "file"
	default:
		return nil, errors.New("want git+https://... or git+file:///...")
	}
	if strings.HasPrefix(ref, "-") {
		return nil, fmt.Errorf("%q is not a branch or a tag", ref)
	}
	dir, err := os.MkdirTemp("", "trajgen-skill-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	clone := filepath.Join(dir, "repository")
	args := []string{
		"-c", "protocol.allow=never", "-c", "protocol." + allow + ".allow=always", "-c", "core.hooksPath=/dev/null",
		"-c", "core.symlinks=false", "-c", "http.followRedirects=false", "-c", "credential.helper=",
		"clone", "--quiet", "--depth=1", "--no-tags", "--single-branch",
	}
	if ref != "" {
		args = append(args, "--branch", ref)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, "--", address, clone)...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_LFS_SKIP_SMUDGE=1",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git clone: %w: %s", err, chars.First(strings.TrimSpace(string(out)), 500, "…"))
	}
	if !filepath.IsLocal(filepath.Clean("./"+which)) && which != "" {
		return nil, fmt.Errorf("%q is not a path within the repository", which)
	}
	return folder(filepath.Join(clone, filepath.FromSlash(which)))
}
