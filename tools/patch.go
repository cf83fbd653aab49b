package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/internal/chars"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "patch", Toolset: fileToolset,
		Description: "Edit existing text files. Returns a unified diff.\n" +
			"mode=replace (default): in the file path, replace old_string by new_string. old_string must occur exactly once, " +
			"so give enough lines around it; or set replace_all or expected_replacements. Small differences in white space, indentation, escapes and " +
			"typographic quotes are tolerated, and the strategy that matched is named in the result.\n" +
			"mode=patch: apply the V4A text in patch, several files at once, all of it or nothing:\n" +
			"*** Begin Patch\n*** Update File: a.py\n@@ def main():\n context line\n-removed line\n+added line\n" +
			"*** Add File: b.txt\n+whole content\n*** Delete File: c.txt\n*** Move File: d.txt -> e.txt\n*** End Patch\n" +
			"Relative paths start at the initial working directory.",
		Access: patchAccess,
	}, patch))
}

type patchArgs struct {
	Mode       string  `json:"mode,omitempty" doc:"What the call does." enum:"replace,patch" default:"replace"`
	Path       string  `json:"path,omitempty" alias:"file_path,filename,file,target_file" doc:"mode=replace: the file."`
	OldString  *string `json:"old_string,omitempty" alias:"old_str,old_text,old,search" doc:"mode=replace: the text to find, without line numbers."`
	NewString  *string `json:"new_string,omitempty" alias:"new_str,new_text,new,replace,replacement" doc:"mode=replace: what replaces it; empty deletes it."`
	ReplaceAll bool    `json:"replace_all,omitempty" alias:"allow_multiple" doc:"mode=replace: replace every occurrence." default:"false"`
	Expected   *int    `json:"expected_replacements,omitempty" doc:"mode=replace: how often old_string occurs; all of them are replaced, or with another number none." min:"1"`
	Patch      string  `json:"patch,omitempty" alias:"patch_text" doc:"mode=patch: the V4A text."`
	DryRun     bool    `json:"dry_run,omitempty" doc:"Only say what would be changed." default:"false"`
}

func patchAccess(arguments json.RawMessage) registry.Access {
	var args patchArgs
	if json.Unmarshal(arguments, &args) != nil {
		return registry.Access{Writes: []string{"/"}}
	}
	if args.Mode != "patch" {
		return registry.Access{Writes: []string{args.Path}}
	}
	operations, err := parseV4A(args.Patch)
	if err != nil {
		return registry.Access{Writes: []string{"/"}} // nothing else runs beside it
	}
	var access registry.Access
	for _, op := range operations {
		access.Writes = append(access.Writes, op.path)
		if op.to != "" {
			access.Writes = append(access.Writes, op.to)
		}
	}
	return access
}

func patch(ctx context.Context, env *registry.Env, args patchArgs) (any, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	if args.Mode == "patch" {
		if strings.TrimSpace(args.Patch) == "" {
			return nil, refuse("missing_argument", "patch is required in mode patch")
		}
		if args.Expected != nil {
			return nil, refuse("invalid_argument", "expected_replacements goes with mode=replace alone; nothing was changed")
		}
		return applyV4A(ctx, env, box, args)
	}
	switch {
	case args.Path == "":
		return nil, refuse("missing_argument", "path is required in mode replace")
	case args.OldString == nil || args.NewString == nil:
		return nil, refuse("missing_argument", "old_string and new_string are required in mode replace")
	case *args.OldString == "":
		return nil, refuse("empty_old_string", "old_string is empty; to write a whole file use write_file")
	case *args.OldString == *args.NewString:
		return nil, refuse("identical", "old_string and new_string are identical: there is nothing to change")
	}
	return replaceInFile(ctx, env, box, args)
}

// refuse returns a failure that changed nothing.
func refuse(class, format string, args ...any) *registry.Failure {
	failure := registry.Failf(class, format, args...)
	failure.Extra = map[string]any{"success": false}
	return failure
}

type patchResult struct {
	Success       bool     `json:"success"`
	DryRun        bool     `json:"dry_run,omitempty"` // nothing was written
	Strategy      string   `json:"strategy"`
	Confidence    float64  `json:"confidence"`
	Replacements  int      `json:"replacements"`
	Diff          string   `json:"diff"`
	FilesModified []string `json:"files_modified"`
	ResolvedPath  string   `json:"resolved_path"`
	Lint          *lint    `json:"lint,omitempty"`
	Warning       string   `json:"_warning,omitempty"`
}

func replaceInFile(ctx context.Context, env *registry.Env, box sandbox.Sandbox, args patchArgs) (any, error) {
	old, err := readTarget(ctx, box, args.Path)
	if err != nil {
		return nil, nameDirectory(env, box, readFailure(ctx, box, err, old.name, args.Path), args.Path)
	}
	file, err := old.text()
	if err != nil {
		return nil, err
	}
	files := filesOf(env.Session)
	found, err := findReplacement(file, args)
	if err != nil {
		return nil, files.failed(old.real, err)
	}
	text, data := file.apply(found.edits)
	if text == file.text {
		return nil, refuse("identical", "the replacement leaves %s as it is (strategy %s)", args.Path, found.strategy)
	}
	result := patchResult{
		Success: true, DryRun: args.DryRun, Strategy: found.strategy, Confidence: found.confidence, Replacements: len(found.edits),
		Diff: diffOf(args.Path, file.text, found.edits), FilesModified: []string{args.Path}, ResolvedPath: old.real,
		Warning: files.warning(old.real, old.stamp, false),
	}
	if args.DryRun {
		return result, nil
	}
	if err := box.Files().Write(ctx, sandbox.FileWrite{Path: old.name, Data: data}); err != nil {
		return nil, fileFailure(err, "write", args.Path)
	}
	files.wrote(old.real, data, false)
	result.Lint = lintFile(ctx, box, old.name, old.data, data)
	return result, nil
}

// findReplacement returns what a replacement changes, or why it is refused.
func findReplacement(file textFile, args patchArgs) (match, error) {
	old, new := unixLines(*args.OldString), unixLines(*args.NewString)
	if old == new {
		return match{}, refuse("identical", "old_string and new_string differ in nothing but line ends, which are kept as the file has them")
	}
	found := findEdits(file.text, old, new)
	switch {
	case found.unclear:
		return found, refuse("escape_drift", "old_string is in %s only when its escapes are read as what they stand for, and new_string "+
			"can then be read in several ways; %s", args.Path, escapeAdvice)
	case len(found.edits) == 0:
		return found, notFoundInFile(file.text, old, args.Path)
	case args.Expected != nil && (len(found.edits) != *args.Expected || found.overlap):
		return found, unexpected(file.text, found, args)
	case (len(found.edits) > 1 || found.overlap) && !args.ReplaceAll && args.Expected == nil:
		return found, ambiguous(file.text, found, args.Path)
	case found.strategy != escapeStrategy && escapedAnew(file.text, old, new, lineBefore(file.text, found.edits[0].start)):
		return found, refuse("escape_drift", "new_string has \\\", \\' or \\n where a plain quote or line end seems to be meant; %s", escapeAdvice)
	}
	return found, checkGrowth(file, found.edits, args.Path)
}

const escapeAdvice = "give both texts exactly as the file is to have them, escaped once, as JSON wants it; if the backslashes " +
	"are meant, use mode=patch"

// checkGrowth refuses edits whose result would fill the runner's memory: many places times a long text.
func checkGrowth(file textFile, edits []edit, shown string) error {
	size := len(file.text) + len(file.crs)
	for _, e := range edits {
		if size += len(e.text) - (e.end - e.start); size > maxFile {
			return refuse("too_large", "the change would make %s larger than %s bytes", shown, thousands(maxFile))
		}
	}
	return nil
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// text returns the content of a file that is to be edited.
func (t target) text() (textFile, error) {
	if err := t.whole(); err != nil {
		return textFile{}, err
	}
	file, ok := parseText(t.data)
	if !ok {
		return file, refuse("binary_file", "%s is not a UTF-8 text file and cannot be patched", t.shown)
	}
	return file, nil
}

// maxDiff bounds the diff in a result, in characters.
const maxDiff = 20_000

func diffOf(shown, text string, edits []edit) string {
	changes := make([]udiff.Edit, len(edits))
	for i, e := range edits {
		changes[i] = udiff.Edit{Start: e.start, End: e.end, New: e.text}
	}
	diff, err := udiff.ToUnified("a/"+shown, "b/"+shown, text, changes, udiff.DefaultContextLines)
	if err != nil {
		return "" // the edits have been applied already, so they are sound
	}
	return cutDiff(diff)
}

func cutDiff(diff string) string {
	if len(diff) <= maxDiff {
		return diff
	}
	return chars.First(diff, maxDiff, fmt.Sprintf("\n... (diff cut, %s bytes in all)\n", thousands(len(diff))))
}
