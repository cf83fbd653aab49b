package threats

import keys "trajgen/tools/internal/secrets"

// The words that several patterns share.
const (
	home      = `(~|\$HOME|\$\{HOME\}|/root|/home/[\w.-]+)`
	secret    = `\$\{?\w*(key|token|secret|passw|credential)\w*`
	secrets   = `(\.env\b|\.netrc\b|\.pgpass\b|\.npmrc\b|\.pypirc\b|\bcredentials\b|\bid_(rsa|ed25519|ecdsa)\b|/etc/shadow\b)`
	change    = `\b(edit|modify|rewrite|write|append|add|change|update|overwrite|insert|inject|patch|echo)\b`
	somewhere = `(the\s+|our\s+|your\s+|a\s+)?(c2\b|c&c\b|command[\s-]+(and|&)[\s-]+control\b|botnet\b|(bot)?master\b|operator\b|https?://)`
)

// patterns are RE2, case-insensitive, for the text in its compatibility form. They match a verb with its object, so that a note
// about rules, prompts or servers does not count as an instruction.
var patterns = []Pattern{
	{"prompt_injection", `\b(ignore|disregard|forget|skip)\s+(\w+\s+){0,3}(previous|prior|above|earlier|preceding|foregoing)\s+(\w+\s+){0,2}(instructions?|prompts?|rules|directions|orders|messages)\b`},
	{"sys_prompt_override", `\b(override|replace|overwrite|supersede)s?\s+(\w+\s+){0,3}system\s+(prompt|message|instructions?)\b|\bnew\s+system\s+(prompt|message|instructions?)\s*:|\bsystem\s+prompt\s+override\b`},
	{"disregard_rules", `\b(disregard|ignore|break|violate)\s+((any|all|each|every)\s+(one\s+)?(of\s+)?)?your\s+(\w+\s+){0,2}(rules|guidelines|restrictions|policies|policy|instructions|safeguards)\b|\bdisregard\s+(all|any|every)\s+(\w+\s+)?(rules|guidelines|restrictions|policies|instructions)\b`},
	{"bypass_restrictions", `\bas\s+(if|though)\s+(you|there)\s+(have|had|are|were|was)\s+no\s+(\w+\s+)?(restrictions?|limits?|limitations?|rules|filters?|guidelines)\b|\b(bypass|circumvent|evade|turn\s+off|disable)\s+(your|all|every)\s+(\w+\s+){0,2}(restrictions|filters?|guardrails|safeguards|safety\s+\w+)\b`},
	{"html_comment_injection", `<!--[^>]{0,500}\b(ignore|override|obey|secret|hidden|system|instructions?)\b[^>]{0,500}-->`},
	{"hidden_div", `<\s*(div|span|p|section|font)\b[^>]{0,300}style\s*=[^>]{0,300}(display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0\s*[;"'])`},
	{"translate_execute", `\btranslate\b[^\n]{0,100}\b(and|then)\s+(then\s+)?(run|execute|eval|evaluate)\b`},
	{"deception_hide", `\b(do\s+not|don'?t|never|without)\s+(tell|inform|alert|notify|telling|informing|alerting|notifying)(ing)?\s+(the\s+|your\s+)?(user|human|owner|operator)s?\b|\b(do\s+not|don'?t|never)\s+let\s+(the\s+|your\s+)?(user|human|owner|operator)\s+(know|see|notice|find)\b|\b(hide|conceal)\s+(this|that|it|these)\s+from\s+(the\s+|your\s+)?(user|human|owner|operator)\b`},
	{"exfil_curl", `\bcurl\b[^\n]{0,300}(` + secret + `|@[^\s]{0,100}` + secrets + `)`},
	{"exfil_wget", `\bwget\b[^\n]{0,300}(` + secret + `|--(post|body)-file[=\s][^\s]{0,100}` + secrets + `)`},
	{"read_secrets", `\b(cat|less|more|head|tail|strings|xxd|base64|cp|scp|tar|zip)\s+[^\n|;&]{0,200}` + secrets},

	{"role_hijack", `\byou\s+are\s+now\s+(a|an|the|my|called|acting|playing|free|unrestricted|unfiltered|jailbroken)\b|\byou\s+are\s+no\s+longer\s+(a|an|the|bound|required|restricted)\b`},
	{"role_pretend", `\bpretend\s+(to\s+be\b|that\s+you\b|you\s*('re|are|have)\b)`},
	{"leak_system_prompt", `\b(output|print|reveal|show|repeat|leak|dump|disclose|recite)\s+(me\s+)?(your|the)\s+(\w+\s+){0,2}(system|initial|hidden|original)\s+(prompt|instructions?|message)\b`},
	{"remove_filters", `\b(respond|answer|reply|act|operate|speak|write)\s+without\s+(\w+\s+){0,2}(filters?|restrictions?|limitations?|censorship|guardrails|safety)\b`},
	{"fake_update", `\byou\s*('ve|have)\s+been\s+(updated|upgraded|patched|reconfigured|reprogrammed)\b`},
	{"identity_override", `\byour\s+(new|real|true|actual)\s+(name|identity|role|persona|purpose|goal|instructions)\s+(is|are)\b|\bfrom\s+now\s+on\s+you\s+(are|will\s+be|act\s+as)\b`},
	{"c2_node_registration", `\bregister\s+(yourself|this\s+agent|as\s+(a\s+|an\s+)?(new\s+)?(node|bot|agent|implant|worker))\s+(\w+\s+){0,3}(with|at|to|on|under)\b`},
	{"c2_heartbeat", `\b(heartbeats?|beacons?|check[\s-]?in)\s+(\w+\s+){0,5}(to|with|at)\s+` + somewhere},
	{"c2_task_pull", `\b(pull|fetch|poll|retrieve|get|receive|await)\s+(\w+\s+){0,3}(tasks?|commands?|orders|jobs|instructions)\s+from\s+` + somewhere},
	{"c2_network_connect", `\b(connect|join|attach|report|phone)\s+(\w+\s+)?to\s+(the\s+|our\s+|a\s+)?(c2|c&c|command[\s-]+(and|&)[\s-]+control|botnet|swarm|agent\s+(network|mesh))\b`},
	{"forced_action", `\byou\s+(must|have\s+to|are\s+(required|ordered)\s+to|shall)\s+(immediately|now|at\s+once|silently|secretly|quietly)\s+(run|execute|register|connect|send|post|download|install|delete|upload)\b`},
	{"anti_forensic_oneliner", `\b(only|always|exclusively)\s+(use|run|prefer)\s+(\w+\s+){0,2}one[\s-]?liners?\b[^\n]{0,100}\b(trace|disk|file|evidence|log)s?\b`},
	{"anti_forensic_disk", `\b(never|do\s+not|don'?t|avoid)\s+(write|writing|save|saving|store|storing|drop|dropping|leave|leaving)\s+(\w+\s+){0,3}(scripts?|payloads?|code|files?|anything|evidence|traces?)\s+(to|on)\s+(the\s+)?disk\b`},
	{"env_var_unset_agent", `\bunset\s+[^\n;&|]{0,100}\b(CLAUDE|CODEX|TRAJGEN|AGENT|OPENAI|ANTHROPIC|GEMINI|CURSOR)\w*`},
	{"known_c2_framework", `\b(cobalt\s*strike|meterpreter|brute\s*ratel|poshc2|(sliver|mythic|havoc|merlin|covenant|empire)\s+(c2|implant|beacon|agent|stager))\b`},
	{"c2_explicit", `\bc2\s+(server|channel|node|beacon|infrastructure|endpoint|framework|implant|network)s?\b`},
	{"c2_explicit_long", `\bcommand[\s-]+(and|&)[\s-]+control\s+(server|channel|node|infrastructure|endpoint|framework|network)s?\b`},

	{"send_to_url", `\b(send|post|upload|forward|transmit|exfiltrate|submit)\b[^\n]{0,100}\b(to|at)\s+https?://`},
	{"context_exfil", `\b(include|output|print|send|share|attach|append|copy|upload)\s+(\w+\s+){0,4}(conversation|chat\s+history|previous\s+messages|context\s+window|full\s+context|session\s+history)\b`},
	{"ssh_backdoor", `\bauthorized_keys\b`},
	{"ssh_access", home + `/\.ssh\b`},
	{"agent_env", home + `/\.(trajgen|claude|codex|gemini|cursor)/\.env\b`},
	{"agent_config_mod", change + `[^\n]{0,100}(\bAGENTS\.md\b|\bCLAUDE\.md\b|\bGEMINI\.md\b|\.cursorrules\b|\.clinerules\b|\.windsurfrules\b)`},
	{"agent_settings_mod", change + `[^\n]{0,100}(` + home + `/\.(trajgen|claude|codex|gemini|cursor)/|\bSOUL\.md\b)`},
	{"hardcoded_secret", keys.Pattern},
}
