//go:build linux

package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/images/build"
)

// indexes are a Dockerfile that installs from the indexes of Debian, Python and Node, and what is beside it.
var indexes = map[string]string{
	"Dockerfile": `FROM base AS tools
COPY tools/ /
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt

FROM tools AS compiled
RUN apt-get update && apt-get install -y --no-install-recommends tcc && rm -rf /var/lib/apt/lists/*
COPY hello.c .
RUN tcc -nostdlib -L/lib64 -L/lib -o /hello hello.c /lib/*/libc.so.6

FROM tools AS installed
COPY requirements.txt .
RUN python3 -m pip install --require-hashes --target /site -r requirements.txt
WORKDIR /app
COPY package.json package-lock.json ./
ARG NPM
RUN node $NPM ci
RUN PYTHONPATH=/site python3 -c 'import six; print("six", six.__version__)' > /said && \
    node -e 'console.log("is-number", require("is-number")("5"))' >> /said

FROM base
COPY --from=compiled /hello /usr/bin/hello
COPY --from=installed /said /said
RUN hello >> /said
`,
	// Without headers: those would bring Debian's newest C library, in place of the running one.
	"hello.c": `long write(int, const void *, unsigned long);
void _exit(int);
void _start(void) { write(1, "hello from C\n", 13); _exit(0); }
`,
	"requirements.txt": "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n",
	"package.json":     `{"name": "app", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}}`,
	"package-lock.json": `{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
		"": {"name": "app", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}},
		"node_modules/is-number": {"version": "7.0.0",
			"integrity": "sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng=="}}}`,
}

// TestIndexes builds with the package managers of Debian, Python and Node, and again from what is there.
func TestIndexes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes a network of its own, as root")
	}
	if os.Getenv(worldRelay) == "" {
		inWorld(t)
		return
	}
	enterWorld(t)
	s := source(t, indexes["Dockerfile"], indexes)
	npm, err := filepath.EvalSymlinks("/usr/bin/npm")
	if err != nil {
		t.Fatal(err)
	}
	s.Args = map[string]string{"NPM": npm}
	if out, err := exec.Command("testdata/tools", s.Dir+"/tools").CombinedOutput(); err != nil {
		t.Fatalf("copy tools: %v\n%s", err, out)
	}
	dir := t.TempDir()
	const want = `0 0644 0:0 /said "six 1.17.0\nis-number true\nhello from C\n"`
	for i, made := range []bool{true, false} {
		p := newPlace(t, dir, func(o *build.Options) { o.Network, o.Allow = sandbox.NetworkAllowlist, build.Packages })
		image, err := p.builder.Build(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.files(t, image); !strings.Contains(got, want) || (image.Made > 0) != made {
			t.Errorf("build %d made %d layers with\n%s\nwant\n%s", i+1, image.Made, got, want)
		}
	}
}
