package rawtext

import "strings"

// recipient stands before the name of each tool that gpt-oss calls.
const recipient = "to=functions."

// harmonyOpeners are what stands before it, with the tokens or, where the server leaves them out, without.
var harmonyOpeners = []string{
	"<|start|>assistant<|channel|>commentary " + recipient, "<|start|>assistant<|channel|>analysis " + recipient, "<|start|>assistant " + recipient,
	"<|channel|>commentary " + recipient, "<|channel|>analysis " + recipient,
	"assistantcommentary " + recipient, "assistantanalysis " + recipient, "commentary " + recipient, recipient,
}

// readHarmony reads a call of gpt-oss. Its parts may come in another order, and with any part of the tokens:
//
//	<|start|>assistant<|channel|>commentary to=functions.a <|constrain|>json<|message|>{...}<|call|>
//	<|start|>assistant to=functions.a<|channel|>commentary json<|message|>{...}<|call|>
//	assistantcommentary to=functions.a json{...}
func readHarmony(w *walker, at int, opener string) (end int, called bool) {
	at += len(opener)
	head := w.text[at:min(len(w.text), at+maxHead)]
	length := strings.IndexByte(head, '{')
	if length < 0 {
		if len(head) < maxHead && strings.Contains(head, "<|message|>") {
			w.note(truncated, "")
		}
		return at, false
	}
	name, rest := head[:length], ""
	if end := strings.IndexAny(name, "< \t\r\n"); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	for _, word := range []string{"<|channel|>", "commentary", "analysis", "<|constrain|>", "<|message|>", "json", "code"} {
		rest = strings.Replace(rest, word, "", 1)
	}
	if whole := strings.TrimSuffix(name, "json"); w.tools.find(name) == nil && w.tools.find(whole) != nil {
		name = whole // the word behind it is glued on where the token between them is missing
	}
	if strings.TrimSpace(rest) != "" {
		return at, false
	}
	return w.tokenCall(Call{Name: name}, at+length, tokens{call: "<|start|>", end: "<|call|>"})
}
