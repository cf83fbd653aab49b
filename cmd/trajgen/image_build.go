package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/sandbox"
	"trajgen/sandbox/images"
)

// imageBuild are the flags of image build.
type imageBuild struct {
	run.Builds
	dir, name, dataset, dockerfile, target string
	args                                   map[string]string
	secrets                                []string
	json                                   bool
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
			if (len(args) == 1) == (o.dataset != "") {
				return usage(errors.New("want the directory of a Dockerfile, or --dataset"))
			}
			o.dir = *dir
			ctx, stop := signal.NotifyContext(cmd.Context(), endings()...)
			defer stop()
			err := o.build(ctx, std, args)
			if ctx.Err() != nil {
				return withCode(exitInterrupted, err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.name, "tag", "t", "", "a name for the image: built:NAME")
	flags.StringVar(&o.dataset, "dataset", "", "build all images that the tasks of a dataset want")
	flags.StringVar(&o.dockerfile, "dockerfile", "", "path of the Dockerfile in DIR (default: Dockerfile)")
	flags.StringVar(&o.target, "target", "", "the stage that is wanted (default: the last)")
	flags.StringToStringVar(&o.args, "build-arg", nil, "value of an ARG, as NAME=VALUE")
	flags.StringArrayVar(&o.secrets, "secret", nil, "what RUN --mount=type=secret gets, as id=ID,src=FILE or id=ID,env=VARIABLE")
	flags.StringVar(&o.Network, "build-network", "packages", "what commands reach: packages, full or none")
	flags.StringSliceVar(&o.Allow, "build-allow", nil, "further targets, with packages: names, addresses or CIDR ranges")
	flags.StringToStringVar(&o.Map, "image-map", nil, "an image that is taken instead of another, as NAME=REF")
	flags.BoolVar(&o.json, "json", false, "as JSON")
	return cmd
}

func (o *imageBuild) build(ctx context.Context, std stdio, args []string) (err error) {
	settings := sandbox.Settings{BuildNetwork: o.Network, BuildAllow: o.Allow}
	if err := settings.Validate(); err != nil {
		return usage(err)
	}
	if err := o.readSecrets(); err != nil {
		return usage(err)
	}
	store, err := images.Open(images.Options{Dir: o.dir, Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	b := o.NewBuilder(store, sandbox.Options{StateDir: run.StateDir()})
	defer func() { err = errors.Join(err, b.Close()) }()
	tell := &buildReport{std: std, json: o.json, Reasons: map[string]int{}, Images: []run.Built{}}
	if o.dataset != "" {
		if err := run.BuildAll(ctx, b, o.dataset, tell.add); err != nil {
			return err
		}
		return tell.end()
	}
	source := run.SourceOf(&episode.Build{Dir: args[0], Dockerfile: o.dockerfile, Args: o.args, Target: o.target})
	if info, err := os.Stat(source.Dir); err == nil && !info.IsDir() {
		source.Dir, source.Dockerfile = filepath.Split(source.Dir)
	}
	if source.Dir, err = filepath.Abs(source.Dir); err != nil {
		return err
	}
	built := run.BuildOne(ctx, b, "", source)
	if built.Error != "" {
		return errors.New(built.Error)
	}
	if o.name != "" {
		if err := b.Name(ctx, built.Image, o.name); err != nil {
			return err
		}
		built.Image = "built:" + o.name
	}
	tell.add(built)
	return tell.end()
}

// readSecrets reads what the flags name.
func (o *imageBuild) readSecrets() error {
	o.Secrets = map[string][]byte{}
	for _, text := range o.secrets {
		given := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(part, "=")
			given[key] = value
		}
		id := given["id"]
		switch {
		case id == "" || (given["src"] == "") == (given["env"] == "") || len(given) != 2:
			return fmt.Errorf("--secret %s: want id=ID,src=FILE or id=ID,env=VARIABLE", text)
		case given["env"] != "":
			value, ok := os.LookupEnv(given["env"])
			if !ok {
				return fmt.Errorf("--secret %s: the environment variable %s is not set", text, given["env"])
			}
			o.Secrets[id] = []byte(value)
		default:
			data, err := os.ReadFile(given["src"])
			if err != nil {
				return fmt.Errorf("--secret %s: %w", text, err)
			}
			o.Secrets[id] = data
		}
	}
	return nil
}

// buildReport tells of each image when it is done, and at the end how many failed, by reason.
type buildReport struct {
	std     stdio
	json    bool
	Built   int            `json:"built"`
	Failed  int            `json:"failed"`
	Reasons map[string]int `json:"reasons"`
	Images  []run.Built    `json:"images"`
}

func (r *buildReport) add(b run.Built) {
	r.Images = append(r.Images, b)
	if b.Error != "" {
		r.Failed++
		r.Reasons[b.Reason]++
		fmt.Fprintf(r.std.err, "not built: %s\n", b.Error)
		return
	}
	r.Built++
	if !r.json {
		fmt.Fprintf(r.std.out, "%s\t%d layers, %d made\t%s\n", b.Image, b.Layers, b.Made, b.Dir)
	}
}

func (r *buildReport) end() error {
	if r.json {
		encoder := json.NewEncoder(r.std.out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	if r.Failed == 0 {
		return nil
	}
	var counts []string
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		counts = append(counts, fmt.Sprintf("%s %d", reason, r.Reasons[reason]))
	}
	return withCode(exitErrors, fmt.Errorf("%d of %d images were not built: %s", r.Failed, r.Failed+r.Built, strings.Join(counts, ", ")))
}
