package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// Loop is the limit: the loop that an engineer would write who needs the requests of an episode, and the processes, and
// nothing else. It has no sandbox, no registry and no journal, and forgets what it saw.
type Loop struct {
	URLs        []string // base URLs of the server
	Script      string
	Schemas     []json.RawMessage // of the tools, as requests have them
	Episodes    int
	InFlight    int
	Fork        bool // a shell for each tool call and for the verifier
	PromptBytes int
}

// Played is what a process that played says of itself, on its standard output.
type Played struct {
	Episodes   int     `json:"episodes"`
	Seconds    float64 `json:"seconds"`      // of playing, without what comes before and after
	SchedP99MS float64 `json:"sched_p99_ms"` // how long goroutines that could run waited for a processor
	// TenthCPUMS is the CPU time that this process had used at the beginning, and when each tenth of the episodes had
	// ended.
	TenthCPUMS []float64 `json:"tenth_cpu_ms,omitempty"`
}

// Run plays all episodes.
func (l Loop) Run(ctx context.Context) (Played, error) {
	tools, err := libraryTools(l.Schemas)
	if err != nil {
		return Played{}, err
	}
	dir, err := os.MkdirTemp("", "trajgen-limit-")
	if err != nil {
		return Played{}, err
	}
	defer os.RemoveAll(dir)
	dialer := &net.Dialer{Timeout: 15 * time.Second}
	perHost := min(l.InFlight, connections())/len(l.URLs) + 1
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: perHost, MaxConnsPerHost: perHost, DisableCompression: true}}
	var clients []*openai.Client
	for _, url := range l.URLs {
		config := openai.DefaultConfig("")
		config.BaseURL, config.HTTPClient = url, client
		clients = append(clients, openai.NewClientWithConfig(config))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wait sync.WaitGroup
	meter := NewMeter(l.Episodes, func() {})
	for range min(l.InFlight, l.Episodes) {
		wait.Go(func() {
			for n := int(next.Add(1)) - 1; n < l.Episodes && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := l.episode(ctx, clients[n%len(clients)], tools, n, dir); err != nil {
					cancel(fmt.Errorf("episode %d: %w", n, err))
				}
				meter.Ended()
			}
		})
	}
	wait.Wait()
	return meter.Played(), context.Cause(ctx)
}

// libraryTools are the tools as go-openai wants them.
func libraryTools(schemas []json.RawMessage) ([]openai.Tool, error) {
	tools := make([]openai.Tool, len(schemas))
	for i, schema := range schemas {
		var parts struct {
			Function struct {
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		if err := errors.Join(json.Unmarshal(schema, &tools[i]), json.Unmarshal(schema, &parts)); err != nil {
			return nil, fmt.Errorf("read a tool's schema: %w", err)
		}
		tools[i].Function.Parameters = parts.Function.Parameters
	}
	return tools, nil
}

// episode plays one.
func (l Loop) episode(ctx context.Context, client *openai.Client, tools []openai.Tool, n int, dir string) error {
	if l.Fork {
		dir = filepath.Join(dir, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	seed := n
	request := openai.ChatCompletionRequest{Model: modelName, Seed: &seed, Tools: tools, Messages: []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: system},
		{Role: openai.ChatMessageRoleUser, Content: prompt(n, l.PromptBytes)},
	}}
	for turn := 0; ; turn++ {
		response, err := client.CreateChatCompletion(ctx, request)
		if err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		if len(response.Choices) != 1 {
			return fmt.Errorf("turn %d: %d choices", turn, len(response.Choices))
		}
		message := response.Choices[0].Message
		request.Messages = append(request.Messages, message)
		if len(message.ToolCalls) == 0 {
			if message.Content != answer {
				return fmt.Errorf("the answer is %q", message.Content)
			}
			break
		}
		for _, made := range message.ToolCalls {
			result := calls[turn].result
			if l.Fork {
				if result, err = shell(ctx, dir, calls[turn].command); err != nil {
					return err
				}
			}
			request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: result, ToolCallID: made.ID})
		}
	}
	if l.Fork {
		_, err := shell(ctx, dir, verifier)
		return err
	}
	return nil
}

// shell runs a command and returns what a tool would.
func shell(ctx context.Context, dir, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, output)
	}
	result, err := json.Marshal(struct {
		Output   string `json:"output"`
		ExitCode int    `json:"exit_code"`
	}{string(output), 0})
	return string(result), err
}
