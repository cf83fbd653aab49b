package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"trajgen/sandbox"
)

// allow takes the targets of the network mode allowlist.
func (d *decoder) allow(field string, value json.RawMessage) {
	targets, err := asStrings(value)
	if err != nil {
		d.wrong.addf("%s: %v", field, err)
	}
	d.task.Allow = targets
}

// The least that a sandbox can be made with.
const (
	leastMemory = 16 << 20
	leastDisk   = 1 << 20
)

// resources takes the resources of a task's sandbox: {"memory": "2G", "disk": "10G", "cpus": 1}.
func (d *decoder) resources(field string, value json.RawMessage) {
	has := &d.task.Resources
	d.entries(field, value, "with memory, disk, cpus", func(_ string, entry member) (err error) {
		switch entry.name {
		case "memory":
			has.Memory, err = asSize(entry.value, leastMemory)
		case "disk":
			has.Disk, err = asSize(entry.value, leastDisk)
		case "cpus":
			has.CPUs, err = asNumber(entry.value)
			if err == nil && has.CPUs <= 0 {
				err = errors.New("want a number above 0")
			}
		default:
			err = errors.New("unknown key (have memory, disk, cpus)")
		}
		return err
	})
}

// asSize takes bytes, or a text such as "512M" or "2G", in units of 1024.
func asSize(value json.RawMessage, least int64) (int64, error) {
	text, err := asText(value)
	if err != nil {
		return 0, err
	}
	bytes, err := sandbox.ParseSize(text)
	if err != nil || bytes > 1<<50 {
		return 0, fmt.Errorf("%q, want bytes or a size such as 512M or 2G", text)
	}
	if int64(bytes) < least {
		return 0, fmt.Errorf("%q, want %d bytes at least", text, least)
	}
	return int64(bytes), nil
}
