package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
)

// imageBuild are the flags of image build.
type imageBuild struct {
	run.ImageBuild
	secrets []string
	json    bool
}

func newImageBuild(std stdio, dir *string) *cobra.Command {
	o := imageBuild{}
	cmd := &cobra.Command{
		Use: "build DIR|FILE", Short: "Build an image of a Dockerfile, or all that a dataset wants", Args: cobra.MaximumNArgs(1),
		Long: `Builds the image of a Dockerfile, without an engine: each command of a RUN runs in a native sandbox, and what it changes becomes
a layer. Layers are kept by what they are made from, and are not made again. A run builds what its tasks want by itself;
--dataset does so beforehand, says what failed and why, and exits with 3 when some failed.

The image's reference, built:DIGEST, or built:NAME with -t, goes wherever an image is named. Commands of a build reach the
sites where systems and languages have their packages (--build-network packages), everything (full) or nothing (none).`,
		Example: `  trajgen image build ./environment -t tools
  trajgen image build --dataset tasks/ --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (o.Dataset != "") {
				return usage(errors.New("want the directory of a Dockerfile, or --dataset"))
			}
			o.Store = *dir
			if err := o.ReadSecrets(o.secrets); err != nil {
				return usage(err)
			}
			return interrupted(cmd.Context(), func(ctx context.Context) error {
				report := run.NewBuiltImages(std.out, std.err, o.json)
				if err := o.Build(ctx, strings.Join(args, ""), report.Add); err != nil {
					return err
				}
				return cmp.Or(report.End(), withCode(exitErrors, report.Failure()))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Name, "tag", "t", "", "a name for the image: built:NAME")
	flags.StringVar(&o.Dataset, "dataset", "", "build all images that the tasks of a dataset want")
	flags.StringVar(&o.Dockerfile, "dockerfile", "", "path of the Dockerfile in DIR (default: Dockerfile)")
	flags.StringVar(&o.Target, "target", "", "the stage that is wanted (default: the last)")
	flags.StringToStringVar(&o.Args, "build-arg", nil, "value of an ARG, as NAME=VALUE")
	flags.StringArrayVar(&o.secrets, "secret", nil, "what RUN --mount=type=secret gets, as id=ID,src=FILE or id=ID,env=VARIABLE")
	flags.StringVar(&o.Network, "build-network", "packages", "what commands reach: packages, full or none")
	flags.StringSliceVar(&o.Allow, "build-allow", nil, "further targets, with packages: names, addresses or CIDR ranges")
	flags.StringToStringVar(&o.Map, "image-map", nil, "an image that is taken instead of another, as NAME=REF")
	flags.BoolVar(&o.json, "json", false, "as JSON")
	return cmd
}
