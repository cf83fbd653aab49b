package skills

import (
	"cmp"

	"trajgen/tools/threats"
)

// rule is what a pattern of the guard means.
type rule struct {
	family   string
	severity Severity
}

// rules are the patterns of threats, which are about texts that take an agent over, and those about what a skill's scripts do.
var rules = func() (all struct {
	compiled threats.Patterns
	byID     map[string]rule
}) {
	all.byID = map[string]rule{}
	patterns := threats.All()
	for _, p := range patterns {
		r := known[p.ID]
		all.byID[p.ID] = rule{cmp.Or(r.family, "injection"), cmp.Or(r.severity, High)}
	}
	for _, p := range harmful {
		patterns = append(patterns, threats.Pattern{ID: p.id, Expression: p.expression})
		all.byID[p.id] = rule{p.family, p.severity}
	}
	all.compiled = threats.Compile(patterns)
	return all
}()

// known are the patterns of threats that are of another family than injection, or of another severity than high.
var known = map[string]rule{
	"prompt_injection":       {"injection", Critical},
	"sys_prompt_override":    {"injection", Critical},
	"disregard_rules":        {"injection", Critical},
	"exfil_curl":             {"exfiltration", Critical},
	"exfil_wget":             {"exfiltration", Critical},
	"context_exfil":          {"exfiltration", Medium},
	"send_to_url":            {"exfiltration", Medium},
	"read_secrets":           {"credential_exposure", Medium},
	"hardcoded_secret":       {"credential_exposure", High},
	"agent_env":              {"credential_exposure", High},
	"ssh_access":             {"credential_exposure", Medium},
	"ssh_backdoor":           {"persistence", Medium},
	"agent_config_mod":       {"persistence", High},
	"agent_settings_mod":     {"persistence", High},
	"env_var_unset_agent":    {"execution", Medium},
	"known_c2_framework":     {"network", High},
	"anti_forensic_disk":     {"obfuscation", Medium},
	"anti_forensic_oneliner": {"obfuscation", Medium},
	"role_pretend":           {"injection", Medium},
	"translate_execute":      {"injection", Medium},
	"forced_action":          {"injection", High},
}

const (
	fetches  = `\b(curl|wget|fetch|http)\b[^\n|;&]{0,300}`
	shells   = `\s*(sudo\s+(-\w+\s+)*)?(/(usr/)?bin/)?(env\s+)?(ba|z|da|k|fi)?sh\b`
	runs     = `\s*(sudo\s+(-\w+\s+)*)?(/(usr/)?bin/)?(env\s+)?(python3?|perl|ruby|node|php)\b`
	keyFiles = `(\.ssh/|\bid_(rsa|ed25519|ecdsa)\b|\.aws/credentials|\.netrc\b|\.pgpass\b|\.docker/config\.json|\.kube/config|\.git-credentials|/etc/shadow\b)`
	startups = `(\.bashrc|\.bash_profile|\.profile|\.zshrc|\.zprofile|/etc/profile\b|/etc/rc\.local)`
)

// harmful are the guard's own patterns.
var harmful = []struct {
	family, id string
	severity   Severity
	expression string
}{
	{"exfiltration", "post_environment", Critical, fetches + `(-d|--data\S*|-F|--form|-T|--post-data)[\s=]?["']?[^\n]{0,60}(\$\(\s*(env|printenv|set|cat)\b|` + "`" + `\s*(env|printenv|cat)\b)`},
	{"exfiltration", "pipe_environment", Critical, `\b(env|printenv|set)\s*\|\s*(\w+[^|\n]{0,80}\|\s*)?(curl|wget|nc|ncat|socat|telnet)\b`},
	{"exfiltration", "pipe_key_file", Critical, keyFiles + `[^\n]{0,120}\|\s*([^|\n]{0,80}\|\s*)?(curl|wget|nc|ncat|socat)\b`},
	{"exfiltration", "post_os_environ", Critical, `\b(requests|httpx|urllib|session|client|axios|fetch)\b[^\n]{0,200}\b(os\.environ\b\s*[,)}]|dict\(os\.environ|process\.env\s*[,)}])`},
	{"exfiltration", "send_key_file", Critical, `\b(requests|httpx)\.(post|put)\([^\n]{0,200}` + keyFiles},
	{"exfiltration", "markdown_image_secret", Critical, `!\[[^\]\n]{0,100}\]\(https?://[^)\n]{0,300}(\$\{?\w+|\{\{?\s*\w*(key|token|secret|passw|env|conversation|history))`},
	{"exfiltration", "dns_query", Critical, `\b(dig|nslookup|host|ping)\b[^\n]{0,100}(\$\(|` + "`" + `)[^\n]{0,100}(cat|base64|env|xxd|whoami|hostname)`},
	{"exfiltration", "archive_home_send", High, `\b(tar|zip)\b[^\n]{0,120}(~|\$HOME|/home|/root)[^\n]{0,120}\|\s*(curl|nc|ssh)\b`},

	{"obfuscation", "base64_run", Critical, `\bbase64\s+(-d|--decode|-D)\b[^\n|]{0,60}\|(` + shells + `|` + runs + `)`},
	{"obfuscation", "hex_run", Critical, `\bxxd\s+(-\w+\s+)*-r\b[^\n|]{0,60}\|(` + shells + `|` + runs + `)`},
	{"obfuscation", "eval_decoded", Critical, `\b(eval|exec)\s*\(\s*(\w+\.)*(b64decode|decompress|decode|fromhex|unhexlify|loads|atob)\b`},
	{"obfuscation", "eval_compile", High, `\b(eval|exec)\s*\(\s*(compile|__import__|getattr|chr)\s*\(`},
	{"obfuscation", "eval_substitution", High, `\beval\s+["']?\$\([^\n]{0,100}\b(base64|curl|wget|xxd|rev|tr)\b`},
	{"obfuscation", "escaped_command", High, `\$'(\\x[0-9a-f]{2}|\\[0-7]{3}){2,}'`},
	{"obfuscation", "built_from_numbers", High, `(chr\(\d+\)\s*\+\s*){3,}|String\.fromCharCode\((\d+\s*,\s*){5,}`},
	{"obfuscation", "marshal_loads", High, `\bmarshal\.loads\s*\(`},

	{"persistence", "shell_startup", Critical, `(>>?|tee\s+(-a\s+)?)\s*["']?(~|\$HOME|\$\{HOME\}|/root|/home/\w+)?/?` + startups},
	{"persistence", "authorized_keys", Critical, `(>>?|tee\s+(-a\s+)?)\s*\S{0,80}authorized_keys`},
	{"persistence", "crontab", High, `\|\s*crontab\s+-|\bcrontab\s+-e\b|>>?\s*/etc/cron`},
	{"persistence", "service", High, `\bsystemctl\s+(--user\s+)?enable\b|>>?\s*\S{0,80}/systemd/(system|user)/|\blaunchctl\s+load\b`},
	{"persistence", "write_agent_file", Critical, `(>>?|tee\s+(-a\s+)?|\bopen\(|\bcp\s+\S+\s+)\s*["']?\S{0,80}\b(AGENTS|CLAUDE|GEMINI|SOUL)\.md\b`},
	{"persistence", "write_other_skill", Critical, `(>>?|tee\s+(-a\s+)?|\bcp\s+\S+\s+)\s*["']?\S{0,80}/skills/\S{1,80}/SKILL\.md\b`},
	{"persistence", "git_hook", High, `(>>?|\bcp\s+\S+\s+|\btee\s+)\s*\S{0,80}\.git/hooks/`},

	{"supply_chain", "pipe_download", Critical, fetches + `\|(` + shells + `|` + runs + `)`},
	{"supply_chain", "substituted_download", Critical, `(\b(ba|z)?sh\s+-c\s+["']?|\beval\s+["']?|\bsource\s+|\.\s+)(\$|<)\(\s*(curl|wget)\b`},
	{"supply_chain", "run_downloaded", High, `\b(curl|wget)\b[^\n]{0,300}&&\s*(chmod\s+\+x|` + `(ba|z)?sh\s)`},
	{"supply_chain", "unpinned_npx", Medium, `\bnpx\s+(-y|--yes)\s+(@[\w.-]+/)?[\w.-]+(\s|$)`},
	{"supply_chain", "script_dependencies", Medium, `#\s*///\s*script\b`},
	{"supply_chain", "clone_at_run_time", Medium, `\bgit\s+clone\s+(-\S+\s+)*(https?|git|ssh)(://|@)`},
	{"supply_chain", "install_from_url", High, `\b(pip3?|uv\s+pip|npm)\s+install\s+[^\n]{0,100}(git\+)?https?://`},
	{"supply_chain", "other_index", High, `--(extra-)?index-url[\s=]https?://`},

	{"network", "reverse_shell", Critical, `/dev/tcp/[\w.$-]+/\d+|\b(nc|ncat|netcat)\b[^\n]{0,80}\s(-e|-c|--exec)\s|\bsocat\b[^\n]{0,120}exec:`},
	{"network", "python_reverse_shell", Critical, `socket\.socket\([^\n]{0,200}(\n[^\n]{0,200}){0,4}(os\.dup2|subprocess\.call\(\[["']/bin/(ba)?sh)`},
	{"network", "tunnel", High, `\b(ngrok|cloudflared\s+tunnel|localtunnel|bore\s+local)\b|\bssh\s+[^\n]{0,80}-R\s*\d+:`},
	{"network", "metadata_service", High, `169\.254\.169\.254|metadata\.google\.internal`},

	{"destructive", "remove_root", Critical, `\brm\s+(-\w+\s+)*-\w*[rR]\w*\s+(-\w+\s+|--no-preserve-root\s+)*["']?(/|/\*|~|~/|\$HOME/?|/home|/etc|/usr|/var)["']?(\s|$|;|&)`},
	{"destructive", "format_disk", Critical, `\bmkfs(\.\w+)?\s+(-\S+\s+)*/dev/|\bdd\s+[^\n]{0,80}of=/dev/(sd|nvme|vd|hd|mmc)`},
	{"destructive", "fork_bomb", Critical, `:\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:`},
	{"destructive", "remove_tree", High, `\bshutil\.rmtree\(\s*["'](/|~|/home|/etc)["']`},
	{"destructive", "drop_everything", Medium, `\bdrop\s+database\b|\bgit\s+push\s+[^\n]{0,80}(--force|-f)\b`},

	{"execution", "shell_of_input", Medium, `\b(os\.system|os\.popen)\s*\(|\bsubprocess\.\w+\([^\n]{0,200}shell\s*=\s*True`},
	{"execution", "eval_input", Medium, `\beval\s*\(\s*(input|sys\.argv|request|open)\b`},
	{"execution", "pickle", Medium, `\bpickle\.loads?\s*\(`},

	{"credential_exposure", "key_block", High, `-----BEGIN\s+(RSA|EC|OPENSSH|DSA|PGP)?\s*PRIVATE\s+KEY`},
	{"credential_exposure", "dump_environment", Medium, `\b(printenv|env)\s*>|\bjson\.dumps?\(\s*dict\(os\.environ`},
	{"credential_exposure", "keychain", High, `\bsecurity\s+find-(generic|internet)-password\b|\bsecret-tool\s+lookup\b`},

	{"traversal", "climbs_out", Medium, `(\.\./){3,}`},
	{"traversal", "process_files", Medium, `/proc/(self|\d+)/(environ|mem)\b`},
	{"traversal", "system_passwords", Medium, `/etc/(passwd|sudoers)\b`},

	{"privilege_escalation", "sudoers", Critical, `\bNOPASSWD\s*:|>>?\s*/etc/sudoers`},
	{"privilege_escalation", "setuid", High, `\bchmod\s+([ugo]*\+s|[2467]\d{3})\s`},
	{"privilege_escalation", "open_to_all", Medium, `\bchmod\s+(-R\s+)?0?777\b`},
	{"privilege_escalation", "docker_socket", High, `/var/run/docker\.sock|--privileged\b[^\n]{0,80}-v\s+/:/`},

	{"mining", "miner", Critical, `\b(xmrig|minerd|cpuminer|ethminer|cgminer|nbminer)\b`},
	{"mining", "pool", Critical, `\bstratum\+(tcp|ssl)://`},
}
