package build

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"trajgen/sandbox/images"
)

// ownerOf reads USER[:GROUP], by name or number, with the files of an image.
func ownerOf(view *images.View, text string) ([2]int, error) {
	who, err := identify(view, text)
	if number, err := strconv.Atoi(text); err == nil {
		who.uid, who.gid = number, number // a number alone is taken for both
	}
	return [2]int{who.uid, who.gid}, err
}

// identity is a user as a command of an image sees itself.
type identity struct {
	uid, gid int
	home     string
	groups   []int
}

// maxAccounts bounds /etc/passwd and /etc/group.
const maxAccounts = 4 << 20

// identify finds a user. A number without an account is taken as it is.
func identify(view *images.View, text string) (identity, error) {
	name, group, hasGroup := strings.Cut(text, ":")
	who := identity{home: "/"}
	accounts, err := lines(view, "/etc/passwd")
	if err != nil {
		return who, err
	}
	number, isNumber := strconv.Atoi(name)
	found := name == ""
	if name == "" {
		name, who.home = "root", "/root"
	} else if isNumber == nil {
		who.uid, found = number, true
	}
	for _, f := range accounts {
		if len(f) < 6 || f[0] != name && f[2] != name {
			continue
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 == nil && err2 == nil {
			who.uid, who.gid, who.home, found, name = uid, gid, f[5], true, f[0]
			break
		}
	}
	if !found {
		return who, &Error{Reason: Copy, Err: fmt.Errorf("the image's /etc/passwd lacks the user %q", name)}
	}
	groups, err := lines(view, "/etc/group")
	if err != nil {
		return who, err
	}
	known := !hasGroup
	if n, err := strconv.Atoi(group); hasGroup && err == nil {
		who.gid, known = n, true
	}
	for _, f := range groups {
		if len(f) < 4 {
			continue
		}
		gid, err := strconv.Atoi(f[2])
		if err != nil {
			continue
		}
		if hasGroup && f[0] == group {
			who.gid, known = gid, true
		}
		if !hasGroup && slices.Contains(strings.Split(f[3], ","), name) {
			who.groups = append(who.groups, gid)
		}
	}
	if !known {
		return who, &Error{Reason: Copy, Err: fmt.Errorf("the image's /etc/group lacks the group %q", group)}
	}
	return who, nil
}

// lines reads a file of accounts. An image may have none.
func lines(view *images.View, name string) (all [][]string, err error) {
	data, err := view.ReadFile(name, maxAccounts)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(data) {
		all = append(all, strings.Split(strings.TrimSpace(string(line)), ":"))
	}
	return all, err
}
