package all_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/singularity/singularitytest"
)

func init() {
	mains = append(mains, singularitytest.Main)
	for _, name := range []string{"apptainer", "singularity"} {
		surroundings[name] = func(t testing.TB) (sandbox.Options, error) {
			stand, err := singularitytest.Install(t)
			if err != nil {
				return sandbox.Options{}, err
			}
			return sandbox.Options{Settings: map[string]string{"program": stand.Program, "image": stand.Image, "limits": "none"}}, nil
		}
		caps[name] = singularitytest.Caps
	}
}
