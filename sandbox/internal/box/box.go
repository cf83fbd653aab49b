// Package box is the runner's side of a sandbox with a guest: it talks to the guest over a socket.
package box

import (
	"io/fs"
	"path"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// TakeInfo reads the description of a file.
func TakeInfo(d *wire.Decoder) (sandbox.Info, error) {
	var i guest.Info
	d.Take(&i)
	return described(&i), d.Err()
}

// TakeInfos reads the descriptions of the files in a directory.
func TakeInfos(d *wire.Decoder) ([]sandbox.Info, error) {
	var all []guest.Info
	wire.List(d.Coder(), &all, (*guest.Info).Fields)
	infos := make([]sandbox.Info, len(all))
	for i := range all {
		infos[i] = described(&all[i])
	}
	return infos, d.Err()
}

func described(i *guest.Info) sandbox.Info {
	return sandbox.Info{
		Name: path.Base(i.Path), Path: i.Path, Size: i.Size, Mode: fs.FileMode(i.Mode), ModTime: time.Unix(i.Seconds, i.Nanoseconds),
	}
}
