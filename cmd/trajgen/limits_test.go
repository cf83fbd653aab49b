package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a type, and this command, may have at most: beyond it there is a second story, which wants a name and a room of its own.
const (
	mostFields  = 25
	mostMethods = 20
	mostLines   = 4500
)

// published are the types whose fields are the columns of rows.
var published = map[string]bool{
	"outputs/rows.Trajectory": true, "outputs/rows.ToolCall": true, "outputs/rows.Turn": true,
	"pipeline/episode.Episode": true, "pipeline/episode.ToolCall": true,
}

func TestLimits(t *testing.T) {
	const root = "../.."
	fields, methods, lines := map[string]int{}, map[string]int{}, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		room := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, root+"/")))
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if room == "cmd/trajgen" {
			lines += strings.Count(string(text), "\n")
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, each := range file.Decls {
			if method, ok := each.(*ast.FuncDecl); ok && method.Recv != nil {
				methods[room+"."+receiver(method.Recv.List[0].Type)]++
			}
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if of, ok := spec.Type.(*ast.StructType); ok {
					fields[room+"."+spec.Name.Name] = of.Fields.NumFields()
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range fields {
		if n > mostFields && !published[name] {
			t.Errorf("%s has %d fields; at most %d: find the second story in it", name, n, mostFields)
		}
	}
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods; at most %d: find the second story in it", name, n, mostMethods)
		}
	}
	if lines >= mostLines {
		t.Errorf("cmd/trajgen has %d lines; under %d: what is not flags and printing has a room below", lines, mostLines)
	}
	for name := range published {
		if fields[name] == 0 {
			t.Errorf("%s, which is published, is missing", name)
		}
	}
}

// receiver is the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
