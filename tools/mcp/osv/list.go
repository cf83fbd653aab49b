package osv

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of what is read.
const (
	maxRecord = 16 << 20 // bytes of an advisory, or of an answer
	maxDump   = 4 << 30  // bytes of a zip file
	maxPages  = 100      // of an answer
	patience  = 10 * time.Minute
)

// Look looks for advisories about packages in a list: a JSON file with an advisory or an array of them, a folder or a zip file of
// such files, the URL of such a file, or that of a server with OSV's API. A list that cannot be read is an error. The findings are
// sorted, and each is there once.
func Look(ctx context.Context, list string, packages []Package) (found []Finding, err error) {
	if len(packages) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	take := func(data []byte) error {
		records, err := decode(data)
		for i := range records {
			found = append(found, records[i].about(packages)...)
		}
		return err
	}
	if u, wrong := url.Parse(list); wrong == nil && (u.Scheme == "http" || u.Scheme == "https") {
		err = remote(ctx, u, packages, take)
	} else {
		err = local(ctx, list, take)
	}
	if err != nil {
		return nil, fmt.Errorf("advisories: %s: %w", list, err)
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return strings.Compare(a.Package.String()+" "+a.ID, b.Package.String()+" "+b.ID)
	})
	return slices.CompactFunc(found, func(a, b Finding) bool { return a.Package == b.Package && a.ID == b.ID }), nil
}

// decode reads an advisory, an array of them, or the answer of a server.
func decode(data []byte) (records []record, err error) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		err = json.Unmarshal(data, &records)
	} else {
		var one struct {
			record
			Vulns *[]record `json:"vulns"`
		}
		if err = json.Unmarshal(data, &one); one.Vulns != nil {
			return *one.Vulns, err
		}
		records = []record{one.record}
	}
	if err == nil && slices.ContainsFunc(records, func(r record) bool { return r.ID == "" }) {
		err = errors.New("it has no id: want advisories in OSV's format")
	}
	return records, err
}

// local reads the files of a list.
func local(ctx context.Context, list string, take func([]byte) error) error {
	info, err := os.Stat(list)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return each(ctx, os.DirFS(list), take)
	case strings.EqualFold(filepath.Ext(list), ".zip"):
		archive, err := zip.OpenReader(list)
		if err != nil {
			return err
		}
		defer archive.Close()
		return each(ctx, archive, take)
	}
	file, err := os.Open(list)
	if err != nil {
		return err
	}
	defer file.Close()
	return whole(file, take)
}

// each reads the JSON files of a folder or an archive. Without any it is not a list.
func each(ctx context.Context, files fs.FS, take func([]byte) error) error {
	any := false
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.EqualFold(filepath.Ext(name), ".json") {
			return err
		}
		any = true
		file, err := files.Open(name)
		if err == nil {
			err = whole(file, take)
			file.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return context.Cause(ctx)
	})
	if err == nil && !any {
		err = errors.New("it has no JSON files")
	}
	return err
}

// whole takes all that there is to read.
func whole(r io.Reader, take func([]byte) error) error {
	data, err := io.ReadAll(io.LimitReader(r, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("it has more than %d MiB", maxRecord>>20)
	}
	if err != nil {
		return err
	}
	return take(data)
}

// remote reads a list over HTTP.
func remote(ctx context.Context, u *url.URL, packages []Package, take func([]byte) error) error {
	switch strings.ToLower(filepath.Ext(u.Path)) {
	case ".json":
		return ask(ctx, http.MethodGet, u.String(), nil, func(body io.Reader) error { return whole(body, take) })
	case ".zip":
		file, err := os.CreateTemp("", "trajgen-osv-*.zip")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		err = ask(ctx, http.MethodGet, u.String(), nil, func(body io.Reader) error {
			size, err := io.Copy(file, io.LimitReader(body, maxDump+1))
			if err == nil && size > maxDump {
				err = fmt.Errorf("it has more than %d GiB", maxDump>>30)
			}
			return err
		})
		if err != nil {
			return err
		}
		return local(ctx, file.Name(), take)
	}
	for _, p := range packages {
		if err := query(ctx, u, p, take); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// query asks a server with OSV's API for the advisories about a package.
func query(ctx context.Context, u *url.URL, p Package, take func([]byte) error) error {
	question := map[string]any{"version": p.Version, "package": map[string]string{"ecosystem": p.Ecosystem, "name": p.Name}}
	for range maxPages {
		body, err := json.Marshal(question)
		if err != nil {
			return err
		}
		next := ""
		err = ask(ctx, http.MethodPost, u.JoinPath("v1/query").String(), body, func(body io.Reader) error {
			return whole(body, func(data []byte) error {
				var page struct {
					Vulns []json.RawMessage `json:"vulns"`
					Next  string            `json:"next_page_token"`
				}
				if err := json.Unmarshal(data, &page); err != nil {
					return err
				}
				next = page.Next
				for _, each := range page.Vulns {
					if err := take(each); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil || next == "" {
			return err
		}
		question["page_token"] = next
	}
	return fmt.Errorf("the answer has more than %d pages", maxPages)
}

// ask makes a request.
func ask(ctx context.Context, method, address string, body []byte, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return read(resp.Body)
}
