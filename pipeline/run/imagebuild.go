package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
	"trajgen/sandbox/images"
)

// ImageBuild is an image to build, or all that a dataset wants.
type ImageBuild struct {
	Builds
	Store              string // directory that images are kept in
	Name               string // that the image gets; "" for none
	Dataset            string // whose images are built, in place of one
	Dockerfile, Target string
	Args               map[string]string
}

// Build builds and tells of each image. Its error is about the only image, or about the dataset.
func (o ImageBuild) Build(ctx context.Context, path string, tell func(Built)) (err error) {
	settings := sandbox.Settings{BuildNetwork: o.Network, BuildAllow: o.Allow}
	if err := settings.Validate(); err != nil {
		return AsMistake(err)
	}
	store, err := images.Open(images.Options{Dir: o.Store, Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	b := o.NewBuilder(store, sandbox.Options{StateDir: StateDir()})
	defer func() { err = errors.Join(err, b.Close()) }()
	if o.Dataset != "" {
		return BuildAll(ctx, b, o.Dataset, tell)
	}
	source := SourceOf(&episode.Build{Dir: path, Dockerfile: o.Dockerfile, Args: o.Args, Target: o.Target})
	if info, err := os.Stat(source.Dir); err == nil && !info.IsDir() {
		source.Dir, source.Dockerfile = filepath.Split(source.Dir)
	}
	if source.Dir, err = filepath.Abs(source.Dir); err != nil {
		return err
	}
	built := BuildOne(ctx, b, "", source)
	if built.Error != "" {
		return errors.New(built.Error)
	}
	if o.Name != "" {
		if err := b.Name(ctx, built.Image, o.Name); err != nil {
			return err
		}
		built.Image = "built:" + o.Name
	}
	tell(built)
	return nil
}

// ReadSecrets reads what is named as id=ID,src=FILE or id=ID,env=VARIABLE.
func (b *Builds) ReadSecrets(named []string) error {
	b.Secrets = map[string][]byte{}
	for _, text := range named {
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
			b.Secrets[id] = []byte(value)
		default:
			data, err := os.ReadFile(given["src"])
			if err != nil {
				return fmt.Errorf("--secret %s: %w", text, err)
			}
			b.Secrets[id] = data
		}
	}
	return nil
}

// BuiltImages tells of each image when it is done, and at the end how many failed, by reason.
type BuiltImages struct {
	out, err io.Writer
	json     bool
	Built    int            `json:"built"`
	Failed   int            `json:"failed"`
	Reasons  map[string]int `json:"reasons"`
	Images   []Built        `json:"images"`
}

// NewBuiltImages tells on out, in lines or with asJSON in one document, and on err of what failed.
func NewBuiltImages(out, err io.Writer, asJSON bool) *BuiltImages {
	return &BuiltImages{out: out, err: err, json: asJSON, Reasons: map[string]int{}, Images: []Built{}}
}

// Add takes an image that is done.
func (r *BuiltImages) Add(b Built) {
	r.Images = append(r.Images, b)
	if b.Error != "" {
		r.Failed++
		r.Reasons[b.Reason]++
		fmt.Fprintf(r.err, "not built: %s\n", b.Error)
		return
	}
	r.Built++
	if !r.json {
		fmt.Fprintf(r.out, "%s\t%d layers, %d made\t%s\n", b.Image, b.Layers, b.Made, b.Dir)
	}
}

// End prints the report as JSON, if that is wanted.
func (r *BuiltImages) End() error {
	if !r.json {
		return nil
	}
	encoder := json.NewEncoder(r.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Failure says how many were not built; nil where all were.
func (r *BuiltImages) Failure() error {
	if r.Failed == 0 {
		return nil
	}
	var counts []string
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		counts = append(counts, fmt.Sprintf("%s %d", reason, r.Reasons[reason]))
	}
	return fmt.Errorf("%d of %d images were not built: %s", r.Failed, r.Failed+r.Built, strings.Join(counts, ", "))
}
