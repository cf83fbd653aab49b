package run

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker.
var version = "dev"

// Version is the version of this build.
func Version() string {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
				revision = " " + setting.Value[:12]
			}
		}
	}
	return fmt.Sprintf("%s%s (%s %s/%s)", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
