package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestSitesServe(t *testing.T) {
	cmd := exec.Command(build(t), "sites", "serve", "shop:7", "--addr", "127.0.0.1:0", "--state")
	cmd.Stderr = t.Output()
	printed, err := url.Parse(serving(t, cmd))
	if err != nil || printed.Hostname() != "shop.localhost" {
		t.Fatalf("%v, %v", printed, err)
	}
	get := func(host, path string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1",
			printed.Port())+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := get(printed.Host, "/cart"); !strings.Contains(got, "Your cart is empty") {
		t.Errorf("the shop says %s", got)
	}
	var state struct{ Cart, Requests []json.RawMessage }
	if got := get("localhost", "/state/shop"); json.Unmarshal([]byte(got), &state) != nil || state.Cart == nil ||
		len(state.Requests) != 1 {
		t.Errorf("state %s", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after a signal: %v", err)
	}
}

func TestSitesMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"sites serve shpo": `unknown site "shpo" (have feed,`, "sites serve shop shop:2": "site shop is there twice",
		"sites serve --addr nowhere:x": "listen", "sites list shop": "unknown command",
	} {
		if got := trajgen(t, strings.Fields(args)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: %d %s", args, got.code, got.errOut)
		}
	}
	var listed []struct{ Name string }
	if got := succeed(t, "sites", "list", "--json").out; json.Unmarshal([]byte(got), &listed) != nil || len(listed) != 8 {
		t.Errorf("listed %s", got)
	}
}
