package corpus_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"trajgen/tools/web/corpus"
)

// A folder of Markdown becomes an index, which is searched.
func Example() {
	dir, err := os.MkdirTemp("", "corpus-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{"marrow.md": "# Marrow\n\nThe lighthouse of Marrow burned in 1742.", "oru.md": "# Oru\n\nOru has no harbour."} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	ctx := context.Background()
	path := filepath.Join(dir, "pages.corpus")
	info, err := corpus.Build(ctx, path, corpus.Source{}.Read(ctx, dir), corpus.Options{Analyser: corpus.English})
	if err != nil {
		log.Fatal(err)
	}
	index, err := corpus.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer index.Close()
	hits, err := index.Search(ctx, "when did the lighthouses burn?", 3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Documents, "documents")
	for _, hit := range hits {
		fmt.Println(hit.ID, hit.Snippet)
	}
	// Output:
	// 2 documents
	// marrow.md # Marrow The lighthouse of Marrow burned in 1742.
}
