package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

// baseURL is the model's base URL, or the first of its endpoints.
func baseURL(m model.Settings) string {
	if len(m.Endpoints) > 0 {
		return m.Endpoints[0]
	}
	return cmp.Or(m.BaseURL, DefaultBaseURL)
}

// DefaultBaseURL is the base URL when the run file has none.
const DefaultBaseURL = "https://api.openai.com/v1"

// APIKey reads the endpoint's key. Without a named variable, OPENAI_API_KEY is only sent to OpenAI's own host.
func APIKey(name, baseURL string) (string, error) {
	if name == "" {
		if baseURL != "" && !isOpenAI(baseURL) {
			return "", nil
		}
		name = usualKey
	}
	key := os.Getenv(name)
	if key == "" {
		return "", fmt.Errorf("environment variable %s is empty: export %s=..., or name another with --api-key-env", name, name)
	}
	return key, nil
}

const usualKey = "OPENAI_API_KEY"

func isOpenAI(baseURL string) bool {
	at, err := url.Parse(baseURL)
	return err == nil && at.Hostname() == "api.openai.com"
}

// secretHeaders adds the headers whose values come from the environment. These values are secrets.
func secretHeaders(open, env map[string]string) (headers map[string]string, secrets []string, err error) {
	headers = maps.Clone(open)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := os.Getenv(env[name])
		if value == "" {
			return nil, nil, fmt.Errorf("environment variable %s (for header %s) is empty", env[name], name)
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[name] = value
		secrets = append(secrets, value)
	}
	return headers, secrets, nil
}

// ReplayFrom answers from a journal.
func ReplayFrom(reader *journal.Reader) func(string) ([]episode.Message, bool) {
	return func(id string) ([]episode.Message, bool) {
		ep, err := reader.Episode(id)
		if err != nil {
			return nil, false
		}
		return ep.Messages, true
	}
}

// CleanFrom reads the episodes without faults from a journal, for scripted.Server.Remember.
func CleanFrom(ctx context.Context, reader *journal.Reader) (func(owner string) ([]episode.Message, bool), error) {
	by := map[string]string{}
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		if ep.Twin == nil && ep.Planted == nil {
			for _, owner := range scripted.Owners(ep) {
				by[owner] = ep.ID
			}
		}
	}
	replay := ReplayFrom(reader)
	return func(owner string) ([]episode.Message, bool) { return replay(by[owner]) }, nil
}

// replayDigest identifies the content of a journal.
func replayDigest(reader *journal.Reader) string {
	hash := sha256.New()
	for _, entry := range reader.Entries() {
		fmt.Fprintln(hash, entry.ID, entry.Attempt)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))[:16]
}
