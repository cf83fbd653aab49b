package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/moby/moby/client"
)

// maxAccounts bounds how many bytes of an image's list of users are read.
const maxAccounts = 1 << 20

// makeWorkdir makes a directory for the image's user, who could not make it.
func (x *box) makeWorkdir(ctx context.Context, dir string) error {
	uid, gid, err := x.ids(ctx)
	if err != nil {
		return err
	}
	content := archive(&tar.Header{Name: dir[1:] + "/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: uid, Gid: gid}, nil)
	_, err = x.backend.engine.CopyToContainer(ctx, x.container, client.CopyToContainerOptions{DestinationPath: "/", Content: content})
	return err
}

// ids returns the numbers of the image's user and group, which the image may give as names.
func (x *box) ids(ctx context.Context) (uid, gid int, err error) {
	user, group, named := strings.Cut(x.image.user, ":")
	uid, err = strconv.Atoi(user)
	if err != nil {
		if uid, gid, err = x.account(ctx, "/etc/passwd", user); err != nil {
			return 0, 0, err
		}
	}
	if named {
		if gid, err = strconv.Atoi(group); err != nil {
			gid, _, err = x.account(ctx, "/etc/group", group)
		}
	}
	return uid, gid, err
}

// account finds a name in a file of the image and returns the numbers after it: those of the user and its group, or that of the
// group.
func (x *box) account(ctx context.Context, file, name string) (first, second int, err error) {
	copied, err := x.backend.engine.CopyFromContainer(ctx, x.container, client.CopyFromContainerOptions{SourcePath: file})
	if err != nil {
		return 0, 0, err
	}
	defer copied.Content.Close()
	content := tar.NewReader(copied.Content)
	if _, err := content.Next(); err != nil {
		return 0, 0, fmt.Errorf("read %s: %w", file, err)
	}
	lines := bufio.NewScanner(io.LimitReader(content, maxAccounts))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 4 || fields[0] != name {
			continue
		}
		if first, err = strconv.Atoi(fields[2]); err == nil {
			second, _ = strconv.Atoi(fields[3]) // members, with a group
		}
		return first, second, err
	}
	if err := lines.Err(); err != nil {
		return 0, 0, fmt.Errorf("read %s: %w", file, err)
	}
	return 0, 0, fmt.Errorf("no %s in %s of the image", name, file)
}
