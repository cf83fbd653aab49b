package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"trajgen/tools/internal/chars"
)

// Keys in the _meta of what a server sent, under which mend keeps texts that the library would decode, and so change.
const (
	metaSchema     = "trajgen/schema"
	metaStructured = "trajgen/structured"
)

// mend rewrites a message so that the library can read all of it: a block of a content that it does not know becomes a text which
// says so, where it would refuse the whole result. The schemas of tools and structured contents are kept as the server wrote them:
// the order of keys, and numbers beyond 2^53. A message that needs none of it is returned as it is.
func mend(line []byte) []byte {
	if !bytes.Contains(line, []byte(`"result"`)) {
		return line
	}
	var message, result map[string]json.RawMessage
	if json.Unmarshal(line, &message) != nil || json.Unmarshal(message["result"], &result) != nil || result == nil {
		return line
	}
	changed := mendContent(result)
	if structured, ok := result["structuredContent"]; ok {
		keepText(result, metaStructured, structured)
		if _, ok := result["content"]; !ok {
			result["content"] = json.RawMessage("[]")
		}
		changed = true
	}
	var tools []map[string]json.RawMessage
	if json.Unmarshal(result["tools"], &tools) == nil && len(tools) > 0 {
		for _, tool := range tools {
			if schema, ok := tool["inputSchema"]; ok && tool != nil {
				keepText(tool, metaSchema, schema)
				if given := bytes.TrimSpace(schema); len(given) == 0 || given[0] != '{' {
					tool["inputSchema"] = json.RawMessage("{}")
				}
			}
		}
		result["tools"] = encoded(tools)
		changed = true
	}
	if !changed {
		return line
	}
	message["result"] = encoded(result)
	return encoded(message)
}

// mendContent mends the blocks of a tool's content, and of the messages of a prompt.
func mendContent(result map[string]json.RawMessage) (changed bool) {
	var blocks []json.RawMessage
	if json.Unmarshal(result["content"], &blocks) == nil {
		for i := range blocks {
			changed = mendBlock(&blocks[i]) || changed
		}
		if changed {
			result["content"] = encoded(blocks)
		}
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(result["messages"], &messages) == nil {
		for _, message := range messages {
			if block, ok := message["content"]; ok && mendBlock(&block) {
				message["content"], changed = block, true
			}
		}
		if changed {
			result["messages"] = encoded(messages)
		}
	}
	return changed
}

// mendBlock makes a text of a block that the library would refuse.
func mendBlock(block *json.RawMessage) bool {
	var has struct {
		Type string `json:"type"`
		Data []byte `json:"data"`
	}
	err := json.Unmarshal(*block, &has)
	switch has.Type {
	case "text", "resource", "resource_link":
		if err == nil {
			return false
		}
	case "image", "audio":
		if err == nil && len(has.Data) > 0 {
			return false
		}
		*block = text(fmt.Sprintf("[%s whose data cannot be read]", has.Type))
		return true
	}
	*block = text(fmt.Sprintf("[content of type %s]", chars.First(has.Type, 60, "…")))
	return true
}

func text(s string) json.RawMessage {
	return encoded(map[string]string{"type": "text", "text": s})
}

// keepText puts the text of a value into the _meta beside it.
func keepText(object map[string]json.RawMessage, key string, value json.RawMessage) {
	var meta map[string]json.RawMessage
	if json.Unmarshal(object["_meta"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta[key] = encoded(string(value))
	object["_meta"] = encoded(meta)
}

// encoded is the JSON of texts, and of what was read from JSON.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a message of a server: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
