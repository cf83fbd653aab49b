// Package secrets knows what keys and passwords look like.
package secrets

import (
	"regexp"
	"sync"
)

// Pattern matches a key of a well-known form, or a long value beside the name of a secret. It is RE2, case-insensitive.
const Pattern = `\b(api[_-]?key|access[_-]?(key|token)|client[_-]?secret|token|secret|password|passwd)\b` +
	`["']?\s*[=:]\s*["']?[\w+/.=-]{20,}` +
	`|\bsk-[\w-]*[A-Za-z0-9]{20,}` + // the long part keeps words apart, as in sk-hynix-opens-a-new-factory
	`|(?-i:\b[sr]k_(live|test)_\w{16,})` +
	`|\bgh[pousr]_\w{30,}` +
	`|\bgithub_pat_\w{30,}` +
	`|\bglpat-[\w-]{20,}` +
	`|\bxox[abceprs]-\d[\w-]{10,}` +
	`|(?-i:\b(AKIA|ASIA)[0-9A-Z]{16}\b)` +
	`|(?-i:\bAIza[\w-]{35})` +
	`|(?-i:\bhf_[A-Za-z]{30,})` +
	`|(?-i:\bnpm_[A-Za-z0-9]{36})` +
	`|(?-i:\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.)` +
	`|-----BEGIN[\s+][A-Z+ ]{0,30}PRIVATE[\s+]+KEY`

// compiled is for the first text that is looked at: a helper that never looks pays nothing.
var compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?is)" + Pattern) })

// In reports whether a text holds something that looks like a secret.
func In(text string) bool { return compiled().MatchString(text) }

var named = regexp.MustCompile(`(?i)(^|_)(api_?key|access_?key|token|secret|password|passwd|credentials?)$`)

// Named says whether a variable of this name holds a secret.
func Named(name string) bool { return named.MatchString(name) }
