package tools

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"trajgen/registry"
	"trajgen/tools/search"
)

// Bounds of a search.
const (
	searchTimeout = 60 * time.Second
	maxMatches    = 1000 // on a page
	maxContext    = 20
	maxOffset     = 1 << 30
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "search_files", Toolset: fileToolset,
		Description: "Search file contents or find files by name; prefer it to grep, find and ls -R in the terminal.\n" +
			"target=content (default): pattern is a regular expression (RE2: no look-around, no back-references; \\w, \\d and " +
			"\\b know ASCII alone), matched line by line. output_mode: content (matching lines), files_only " +
			"(paths) or count (matches of each file). file_glob limits the files.\n" +
			"target=files: pattern is a glob on the file's name (*.py), or on its path when it has a slash (src/**/*.py); " +
			"without any of *?[{ it is a part of the name.\n" +
			"Results are sorted by path; total_count is exact; truncated=true means that there are more: raise offset. As with " +
			"ripgrep, binary files, links, hidden files and what .gitignore and .ignore name are skipped, unless a glob names " +
			"them; files made for secrets (.env, keys) are withheld. Relative paths start at the initial working directory.",
		Timeout: searchTimeout + 10*time.Second,
		Access: func(arguments json.RawMessage) registry.Access {
			return registry.Access{Reads: []string{pathOf(arguments)}}
		},
	}, searchFiles))
}

func searchFiles(ctx context.Context, env *registry.Env, args search.Args) (any, error) {
	if err := checkSearch(&args); err != nil {
		return nil, err
	}
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	args.Path = expandHome(args.Path, box.Layout())
	question := search.Question{Args: args}
	for _, place := range credentials {
		question.Withheld = append(question.Withheld, path.Join(box.Layout().Home, place))
	}
	var found search.Found
	if err := askHelper(ctx, box, search.Helper, "the search", searchTimeout, question, &found); err != nil {
		if failure, ok := errors.AsType[*registry.Failure](err); ok {
			failure.Message += "; search a smaller directory or use file_glob"
		}
		return nil, err
	}
	if found.Class == search.Denied {
		return nil, denied("%s", found.Failed)
	}
	if found.Failed != "" {
		return nil, nameDirectory(env, box, registry.Failf(found.Class, "%s", found.Failed), args.Path)
	}
	if err := stopRepeating(env, args, &found); err != nil {
		return nil, err
	}
	return found, nil
}

// checkSearch refuses an invalid search before anything is started.
func checkSearch(args *search.Args) error {
	args.Limit = min(max(args.Limit, 1), maxMatches)
	args.Context = min(max(args.Context, 0), maxContext)
	args.Offset = min(max(args.Offset, 0), maxOffset)
	if args.Path == "" {
		args.Path = "."
	}
	if args.Pattern == "" {
		return registry.Failf("invalid_pattern", "the pattern is empty")
	}
	globs := []string{args.FileGlob}
	if args.ByName() {
		globs = append(globs, args.Pattern)
	} else if err := search.Check(args.Expression()); err != nil {
		return registry.Failf("invalid_pattern", "cannot search for this pattern (RE2: no look-around, no back-references, "+
			"repetitions up to 1000): %v", err)
	}
	for _, glob := range globs {
		if !doublestar.ValidatePattern(strings.TrimPrefix(glob, "!")) {
			return registry.Failf("invalid_pattern", "%q is not a valid glob", glob)
		}
	}
	return nil
}
