package setup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/setup"
)

// unset takes variables out of the environment for a test.
func unset(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
}

func writeFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"A=x", "x"},
		{"  export A = x  # why\r\n", "x"},
		{"\ufeffA=x\n", "x"},
		{"A=a$HOME${B}`c`", "a$HOME${B}`c`"},
		{"A=a#b #c", "a#b"},
		{"A=#b", ""},
		{"A=", ""},
		{"A='a\\n\"$HOME # b' # c", `a\n"$HOME # b`},
		{`A="a\n\"b\" \$HOME \\n \q"`, "a\n\"b\" $HOME \\n \\q"},
		{"A=\"a\nB=2\n\"\n", "a\nB=2\n"},
		{"A='a\nB=2'\n", "a\nB=2"},
		{"A=1\nA=2\n", "2"},
		{"A=\"open\nB=2", `"open`},
		{"# A=1\nA-B=2\n=3\nA=4", "4"},
	} {
		unset(t, "A", "B")
		names, warning, err := setup.Load(writeFile(t, tt.text, 0o600), true)
		if got, ok := os.LookupEnv("A"); got != tt.want || !ok || err != nil || warning != "" || names[0] != "A" {
			t.Errorf("%q: A is %q, %v, %v, %v; want %q", tt.text, got, names, warning, err, tt.want)
		}
		os.Unsetenv("A")
		os.Unsetenv("B")
	}
}

func TestLoadOrder(t *testing.T) {
	t.Setenv("GIVEN", "by the environment")
	t.Setenv("EMPTY", "")
	unset(t, "KEPT")
	path := writeFile(t, "GIVEN=of-the-file\nEMPTY=of-the-file\nKEPT=of-the-file\n", 0o640)
	names, warning, err := setup.Load(path, false)
	if err != nil || cmp.Diff([]string{"KEPT"}, names) != "" || os.Getenv("GIVEN") != "by the environment" || os.Getenv("EMPTY") != "" {
		t.Errorf("%v, %v: GIVEN=%q EMPTY=%q", names, err, os.Getenv("GIVEN"), os.Getenv("EMPTY"))
	}
	if !strings.Contains(warning, path+" has keys, and others can read it (mode 0640)") {
		t.Errorf("warning %q", warning)
	}
	f := run.Default()
	reg, err := run.NewRegistry(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Secrets(reg).String(); !strings.Contains(got, "KEPT") || !strings.Contains(got, "GIVEN") {
		t.Errorf("masked are %s", got)
	}

	dir := t.TempDir()
	if _, _, err := setup.Load(dir, false); err != nil {
		t.Errorf("a virtual environment of Python of that name: %v", err)
	}
	if _, _, err := setup.Load(filepath.Join(dir, "none"), false); err != nil {
		t.Error(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none"), writeFile(t, "A="+strings.Repeat("x", 1<<20), 0o600)} {
		if _, _, err := setup.Load(path, true); err == nil {
			t.Errorf("%s is a file of keys", path)
		}
	}
}

// odd are values that have to survive.
var odd = map[string]string{
	"PLAIN": "sk-a1_b/c=", "EMPTY": "", "SPACE": " a b ", "HASH": "a #b", "DOLLAR": "a$HOME${PATH}", "QUOTE": `it's "so" $x`,
	"LINES": "-----BEGIN KEY-----\nab\\n'c'\n-----END KEY-----\n", "BACK": `a\'b\"c\\`, "TICK": "`id`'", "WORDS": "grüße\t'x'",
}

// TestWriteKeys holds that a shell and Load read what was written, and that all else stays as it was.
func TestWriteKeys(t *testing.T) {
	const before = "# mine\n\nPLAIN=old # of last year\nexport HASH='old'\nnot a line of ours\nEMPTY= # none\nOTHER=\"a\nSPACE=b\""
	real := writeFile(t, before, 0o644)
	path := filepath.Join(t.TempDir(), ".env")
	if err := os.Symlink(real, path); err != nil {
		t.Fatal(err)
	}
	unset(t, "OTHER", "PLAIN", "EMPTY", "SPACE", "HASH", "DOLLAR", "QUOTE", "LINES", "BACK", "TICK", "WORDS")
	for range 2 {
		d := setup.Draft{EnvFile: path, Keys: odd}
		if written, err := d.Write(); err != nil || len(written) != 1 {
			t.Fatal(written, err)
		}
	}
	if about, err := os.Stat(real); err != nil || about.Mode() != 0o600 {
		t.Errorf("%v, %v", about.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(real)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	data, err := os.ReadFile(path)
	if want := "# mine\n\nPLAIN=sk-a1_b/c= # of last year\nexport HASH='a #b'\nnot a line of ours\nEMPTY='' # none\nOTHER=\"a\nSPACE=b\"\nBACK="; err != nil || !strings.HasPrefix(string(data), want) {
		t.Errorf("%v: %s", err, data)
	}
	if _, _, err := setup.Load(path, true); err != nil {
		t.Fatal(err)
	}
	sourced := writeFile(t, strings.Replace(string(data), "not a line of ours\n", "", 1), 0o600)
	for name, want := range odd {
		out, err := exec.Command("bash", "-c", `. "$1"; printf %s "${!2}"`, "bash", sourced, name).CombinedOutput()
		if got := os.Getenv(name); got != want || err != nil || string(out) != want {
			t.Errorf("%s is %q, in a shell %q (%v), want %q", name, got, out, err, want)
		}
	}
	if got := os.Getenv("OTHER"); got != "a\nSPACE=b" {
		t.Errorf("OTHER is %q", got)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, value := range map[string]string{"A-B": "x", "": "x", "A": "\x00"} {
		d := setup.Draft{EnvFile: filepath.Join(t.TempDir(), ".env"), Keys: map[string]string{name: value}}
		if _, err := d.Write(); err == nil {
			t.Errorf("%q=%q was written", name, value)
		}
	}
}

// TestWriteKeysAnywhere writes into any file: the value comes back, and the other variables keep theirs; or a quote in the file is not
// closed, and the file stays.
func TestWriteKeysAnywhere(t *testing.T) {
	piece := rapid.OneOf(rapid.SampledFrom([]string{"A=", "KEY=", "export B = ", "'", "\"", "\n", "\\", " #", "$x", "\r\n", "`", " "}), rapid.StringN(0, 3, -1))
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(t, "file"), "")
		value := strings.ReplaceAll(strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "value"), ""), "\x00", "")
		path := filepath.Join(dir, ".env")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := setup.Scan(text)
		want["KEY"] = value
		d := setup.Draft{EnvFile: path, Keys: map[string]string{"KEY": value}}
		_, refused := d.Write()
		data, err := os.ReadFile(path)
		if refused != nil {
			if !strings.ContainsAny(text, `'"`) || !strings.Contains(refused.Error(), "a quote that is not closed") || err != nil || string(data) != text {
				t.Fatalf("%q became %q: %v, %v", text, data, refused, err)
			}
			return
		}
		if diff := cmp.Diff(want, setup.Scan(string(data))); err != nil || diff != "" {
			t.Errorf("%q became %q: %v %s", text, data, err, diff)
		}
	})
}
