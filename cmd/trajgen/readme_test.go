package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"trajgen/datasets"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/run"
)

// pages are what users read, relative to the repository.
func pages(t *testing.T) []string {
	t.Helper()
	manual, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(manual) < 10 {
		t.Fatalf("%d pages in docs, %v", len(manual), err)
	}
	all := []string{"README.md", "CONTRIBUTING.md"}
	for _, path := range manual {
		all = append(all, "docs/"+filepath.Base(path))
	}
	return all
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadme runs every command of each page and plays every run file, in order and in one folder, as a user would who has
// built the program.
func TestReadme(t *testing.T) {
	build(t)
	for _, name := range pages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPage(t, readPage(t, name))
			p.runCommands(t)
			p.playRunFiles(t)
		})
	}
}

// block is what stands between fences. One with a name is a file, one without in a shell's language is typed, and one
// without a language is shown.
var block = regexp.MustCompile("(?ms)^```(\\w*)(?: (\\S+))?\n(.*?)^```$")

// page is one page of the manual, in a folder of its own where its files are.
type page struct {
	dir      string
	bodies   string // of all blocks
	commands []string
	files    [][2]string // name, text
	endpoint string
}

func openPage(t *testing.T, text string) *page {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &page{dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(p.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"bin/trajgen": build(t), "examples": filepath.Join(root, "examples"), "datasets": filepath.Join(root, "datasets")} {
		if err := os.Symlink(target, filepath.Join(p.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	server, here := readmeEndpoint(t, "my-model", "secret")
	_, spare := readmeEndpoint(t, "other-model", "other-secret")
	p.endpoint = here
	learn(t, server, "bundled")
	local := strings.NewReplacer("http://localhost:8000/v1", here, "http://localhost:8001/v1", spare)
	for _, found := range block.FindAllStringSubmatch(text, -1) {
		language, name, body := found[1], found[2], local.Replace(found[3])
		p.bodies += body
		switch {
		case name != "":
			p.files = append(p.files, [2]string{name, body})
			if err := os.WriteFile(filepath.Join(p.dir, name), []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".jsonl") {
				learn(t, server, filepath.Join(p.dir, name))
			}
		case language == "sh":
			p.commands = append(p.commands, body)
		case language != "":
			t.Errorf("a block in %s has no name, so nothing can use it:\n%s", language, body)
		}
	}
	if fences := strings.Count("\n"+text, "\n```"); fences != 2*len(block.FindAllString(text, -1)) {
		t.Errorf("%d fences do not make %d blocks", fences, len(block.FindAllString(text, -1)))
	}
	return p
}

func (p *page) bash(t *testing.T, script string) result {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "MY_KEY=secret", "OTHER_KEY=other-secret")
	got := finish(t, cmd)
	if got.code != 0 {
		t.Errorf("exit code %d of\n%s\n%s%s", got.code, script, got.errOut, got.out)
	}
	return got
}

// makeTarget finds lines that call make. `make run` and `make test` are what calls this test, or stand beside it in CI.
var makeTarget = regexp.MustCompile(`(?m)^make (\w+)$`)

func (p *page) runCommands(t *testing.T) {
	targets, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range p.commands {
		for _, target := range makeTarget.FindAllStringSubmatch(script, -1) {
			if !strings.Contains(string(targets), "\n"+target[1]+":") {
				t.Errorf("there is no make target %s", target[1])
			}
		}
		got := p.bash(t, makeTarget.ReplaceAllString(script, "true"))
		table, _, _ := strings.Cut(got.out, "calls/episode") // then come latencies
		if strings.HasPrefix(script, "bin/trajgen reliability --run ") && !strings.Contains(p.bodies, table) {
			t.Errorf("the page does not show what this prints:\n%s\n%s", script, got.out)
		}
		if strings.Contains(script, " compress ") && !regexp.MustCompile(`(?m)^[1-9]\d* compressed`).MatchString(got.errOut) {
			t.Errorf("nothing is compressed by\n%s\n%s", script, got.errOut)
		}
	}
}

// playRunFiles plays those that no command of the page plays, and wants every other file to be used.
func (p *page) playRunFiles(t *testing.T) {
	for _, file := range p.files {
		name := file[0]
		var settings run.File
		if err := run.Decode(filepath.Join(p.dir, name), "a run file", &settings); filepath.Ext(name) != ".yaml" || err != nil {
			if !strings.Contains(p.bodies, name) {
				t.Errorf("no other block of the page uses %s, and it is not a run file: %v", name, err)
			}
			continue
		}
		if strings.Contains(strings.Join(p.commands, ""), "trajgen run -f "+name) {
			continue
		}
		script := "bin/trajgen run -f " + name + " --quiet --max-tasks 1 --out runs/of-" + name
		if len(settings.Dataset.Path) == 0 {
			script += " --dataset bundled"
		}
		if settings.Model.Name == "" && settings.Scripted.Policy == "" {
			script += " --model my-model --base-url " + p.endpoint + " --api-key-env MY_KEY"
		}
		p.bash(t, script)
	}
}

// TestPagesLead holds that a link within the repository leads to a file and to a heading of it, that one to Go code which
// names a function leads to the file that has it, and that the manual's index has every page.
func TestPagesLead(t *testing.T) {
	link := regexp.MustCompile("\\[(`?)([^\\]`]+)`?\\]\\(([^)\\s]+)\\)")
	index := readPage(t, "docs/README.md")
	for _, name := range pages(t) {
		if base := filepath.Base(name); base != "README.md" && !strings.Contains(index, base+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
		for _, found := range link.FindAllStringSubmatch(readPage(t, name), -1) {
			target, anchor, _ := strings.Cut(found[3], "#")
			if strings.Contains(target, "://") {
				continue
			}
			if target = filepath.Join(filepath.Dir(name), target); found[3][0] == '#' {
				target = name
			}
			text, err := os.ReadFile(filepath.Join("../..", target))
			switch {
			case err != nil:
				t.Errorf("%s: %s: %v", name, found[0], err)
			case anchor != "" && !anchors(string(text))[anchor]:
				t.Errorf("%s: %s: there is no such heading", name, found[0])
			case found[1] == "`" && filepath.Ext(target) == ".go" && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+found[2]+`\(`).Match(text):
				t.Errorf("%s: %s: there is no such function", name, found[0])
			}
		}
	}
}

// anchors are the names of a page's headings, as they stand in links.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// readmeEndpoint is the user's own server, with a key.
func readmeEndpoint(t *testing.T, model, key string) (*scripted.Server, string) {
	t.Helper()
	server, err := scripted.New(scripted.Config{Policy: "oracle", Model: model, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server, url
}

func learn(t *testing.T, server *scripted.Server, dataset string) {
	t.Helper()
	source, err := datasets.Open(dataset, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for task, err := range source.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		server.Learn(task)
	}
}
