package log_test

import (
	"fmt"
	"os"
	"path/filepath"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

func Example() {
	dir, err := os.MkdirTemp("", "log")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	made, err := disk.Make(filepath.Join(dir, "file"))
	if err != nil {
		panic(err)
	}
	format := log.Format[struct{}]{Magic: "exa\x01", Head: 12, SizeAt: 4, SumAt: 8, Max: 1 << 20}
	f, err := log.New(made, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	for _, text := range []string{"hello", "world"} {
		frame := append(format.Begin(nil, nil), text...)
		format.Finish(frame)
		if _, err := f.Commit(frame); err != nil {
			panic(err)
		}
	}
	for part, err := range format.Parts(f, 0, f.Size(), true) {
		fmt.Println(string(part.Payload), part.Broken, err)
	}
	// Output:
	// hello <nil> <nil>
	// world <nil> <nil>
}
