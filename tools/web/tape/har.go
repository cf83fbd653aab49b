package tape

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

type object = map[string]any

// HAR writes the recording as an HTTP Archive 1.2, an entry for each exchange. One without an answer has the status 0, as browsers
// write it.
func (t *Tape) HAR(w io.Writer, software string) error {
	out := bufio.NewWriter(w)
	creator, err := json.Marshal(object{"name": "trajgen", "version": software})
	if err != nil {
		return err
	}
	out.WriteString(`{"log":{"version":"1.2","creator":` + string(creator) + `,"entries":[`)
	err = t.archive(func(i int, a archived) error {
		entry, err := json.Marshal(a.entry())
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(entry)
		return err
	})
	if err != nil {
		return err
	}
	out.WriteString("\n]}}\n")
	return out.Flush() // it has the error of each write
}

func (a archived) entry() object {
	request := object{
		"method": a.Method, "url": a.URL, "httpVersion": "HTTP/1.1", "cookies": []any{}, "headers": pairs(a.Sent), "queryString": pairs(a.url.Query()),
		"headersSize": -1, "bodySize": len(a.sent),
	}
	if len(a.sent) > 0 {
		request["postData"] = object{"mimeType": a.Sent.Get("Content-Type"), "text": string(a.sent), "params": []any{}}
	}
	body := a.plain()
	content := object{"size": len(body), "compression": len(body) - len(a.got), "mimeType": a.Header.Get("Content-Type")}
	if utf8.Valid(body) {
		content["text"] = string(body)
	} else {
		content["text"], content["encoding"] = base64.StdEncoding.EncodeToString(body), "base64"
	}
	response := object{
		"status": a.Status, "statusText": a.reason(), "httpVersion": "HTTP/1.1", "cookies": []any{}, "headers": pairs(a.answered()),
		"content": content, "redirectURL": a.Header.Get("Location"), "headersSize": -1, "bodySize": len(a.got),
	}
	switch {
	case a.Failure != nil:
		response["comment"] = a.Failure.Message
	case a.Cut:
		response["comment"] = "the body was not read to its end"
	}
	took := float64(a.Took) / 1000
	return object{
		"startedDateTime": a.began().Format(time.RFC3339Nano), "time": took, "request": request, "response": response, "cache": object{},
		"timings": object{"send": 0, "wait": took, "receive": 0}, "comment": a.Provider + ", " + a.Episode + " " + a.Call,
	}
}

// pairs are names with their values, sorted.
func pairs(all map[string][]string) []object {
	list := []object{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, value := range all[name] {
			list = append(list, object{"name": name, "value": value})
		}
	}
	return list
}
