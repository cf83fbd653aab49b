package model_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/model"
)

// TestClassify has what servers really say, and what it means.
func TestClassify(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"openai requests", 429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 120ms.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, model.ClassRateLimit},
		{"openai too large for its limit", 429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, model.ClassRequestTooLarge},
		{"openai quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, model.ClassQuota},
		{"openai key", 401, `{"error":{"message":"Incorrect API key provided: sk-***. You can find your API key at the website.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, model.ClassAuth},
		{"openai model", 404, `{"error":{"message":"The model ` + "`gpt-9`" + ` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, model.ClassModelNotFound},
		{"openai context", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, model.ClassContextOverflow},
		{"openai overloaded", 503, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","param":null,"code":null}}`, model.ClassOverloaded},
		{"openai server", 500, `{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}}`, model.ClassServer},
		{"openai argument", 400, `{"error":{"message":"Invalid value: 'tool'. Supported values are: 'system', 'user'.","type":"invalid_request_error","param":"messages[0].role","code":"invalid_value"}}`, model.ClassBadRequest},
		{"openai region", 403, `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`, model.ClassAuth},

		{"an echo of the conversation", 422, `{"detail":[{"type":"string_type","loc":["body","messages",3,"content"],"msg":"Input should be a valid string","input":"the bank says: insufficient funds, no such model"}]}`, model.ClassBadRequest},
		{"an echo in another's words", 400, `{"error":{"message":"[{'type': 'extra_forbidden', 'loc': ('body', 'x'), 'msg': 'Extra inputs are not permitted', 'input': 'insufficient_quota'}]","type":"BadRequestError","code":400}}`, model.ClassBadRequest},
		{"a broken server that says anything", 500, `{"error":{"message":"panic: account.go: insufficient balance check failed"}}`, model.ClassServer},

		{"azure rate", 429, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 6 seconds."}}`, model.ClassRateLimit},
		{"azure filter", 400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, model.ClassContentPolicy},
		{"azure deployment", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, model.ClassModelNotFound},
		{"azure key", 401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, model.ClassAuth},

		{"openrouter upstream rate", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"z-ai/glm is temporarily rate-limited upstream. Please retry shortly.","provider_name":"BaseTen"}}}`, model.ClassRateLimit},
		{"openrouter rate with status 200", 200, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"error code: 1015","provider_name":"Kluster"}},"user_id":"u"}`, model.ClassRateLimit},
		{"openrouter credits", 402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 10.","code":402}}`, model.ClassQuota},
		{"openrouter moderation", 403, `{"error":{"message":"Your chosen model requires moderation and your input was flagged for violence","code":403,"metadata":{"reasons":["violence"],"flagged_input":"..."}}}`, model.ClassContentPolicy},
		{"openrouter no provider", 404, `{"error":{"message":"No endpoints found for z-ai/nothing.","code":404}}`, model.ClassModelNotFound},
		{"openrouter provider context", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"The prompt is too long: 140000, model maximum context length: 131071\",\"type\":\"invalid_request_error\"}}","provider_name":"Fireworks"}}}`, model.ClassContextOverflow},
		{"openrouter provider down", 502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"Internal Server Error","provider_name":"X"}}}`, model.ClassServer},
		{"openrouter timeout", 408, `{"error":{"message":"Your request timed out","code":408}}`, model.ClassTimeout},

		{"anthropic overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, model.ClassOverloaded},
		{"anthropic rate", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute."}}`, model.ClassRateLimit},
		{"anthropic prompt", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, model.ClassContextOverflow},
		{"anthropic prompt and reply", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 174167 + 64000 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, model.ClassContextOverflow},
		{"anthropic credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`, model.ClassQuota},
		{"anthropic key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, model.ClassAuth},

		{"gemini rate", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 10\nPlease retry in 17.3s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17s"}]}}]`, model.ClassRateLimit},
		{"gemini wrapped", 429, `{"error":{"message":"{\n \"error\": {\n \"code\": 429,\n \"message\": \"Resource has been exhausted (e.g. check quota).\",\n \"status\": \"RESOURCE_EXHAUSTED\"\n }\n}\n","code":429,"status":"Too Many Requests"}}`, model.ClassRateLimit},
		{"gemini overloaded", 503, `[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`, model.ClassOverloaded},
		{"gemini key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, model.ClassAuth},
		{"gemini context", 400, `[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, model.ClassContextOverflow},
		{"gemini model", 404, `[{"error":{"code":404,"message":"models/gemini-0 is not found for API version v1main","status":"NOT_FOUND"}}]`, model.ClassModelNotFound},

		{"vllm context", 400, `{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, model.ClassContextOverflow},
		{"vllm no room for a reply", 400, `{"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","param":null,"code":400}`, model.ClassContextOverflow},
		{"vllm decoder prompt", 400, `{"object":"error","message":"The decoder prompt (length 10127) is longer than the maximum model length of 8192. Make sure that max_model_len is no smaller.","type":"BadRequestError","param":null,"code":400}`, model.ClassContextOverflow},
		{"vllm model", 404, `{"error":{"message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}}`, model.ClassModelNotFound},
		{"vllm key", 401, `{"error":"Unauthorized"}`, model.ClassAuth},
		{"vllm dead engine", 500, `{"object":"error","message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}`, model.ClassServer},
		{"vllm tools", 400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}`, model.ClassBadRequest},
		{"fastapi", 422, `{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}`, model.ClassBadRequest},

		{"sglang context", 400, `{"object":"error","message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"BadRequestError","param":null,"code":400}`, model.ClassContextOverflow},
		{"sglang memory", 400, `{"object":"error","message":"Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.","type":"BadRequestError","param":null,"code":400}`, model.ClassContextOverflow},
		{"sglang queue", 503, `{"object":"error","message":"The request queue is full.","type":"SERVICE_UNAVAILABLE","param":null,"code":503}`, model.ClassOverloaded},

		{"llama.cpp context", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}`, model.ClassContextOverflow},
		{"llama.cpp context with another status", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}`, model.ClassContextOverflow},
		{"llama.cpp context with status 200", 200, `{"error":{"code":400,"message":"the request exceeds the available context size.","type":"exceed_context_size_error"}}`, model.ClassContextOverflow},
		{"llama.cpp loading", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, model.ClassOverloaded},
		{"llama.cpp key", 401, `{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}`, model.ClassAuth},
		{"llama-cpp-python context", 400, `{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"invalid_request_error","code":null}}`, model.ClassContextOverflow},
		{"lm studio context", 400, `{"error":"Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough."}`, model.ClassContextOverflow},

		{"ollama model", 404, `{"error":{"message":"model \"foo\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, model.ClassModelNotFound},
		{"ollama busy", 503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, model.ClassOverloaded},
		{"ollama slots", 500, `{"error":"unexpected server status: llm busy - no slots available"}`, model.ClassOverloaded},
		{"ollama runner", 500, `{"error":{"message":"llama runner process has terminated: exit status 2","type":"api_error","param":null,"code":null}}`, model.ClassServer},
		{"ollama no tools", 400, `{"error":{"message":"registry.ollama.ai/library/phi3 does not support tools","type":"api_error","param":null,"code":null}}`, model.ClassBadRequest},

		{"litellm context", 400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: too many tokens","type":null,"param":null,"code":"400"}}`, model.ClassContextOverflow},
		{"litellm budget", 400, `{"error":{"message":"Budget has been exceeded! Current cost: 26.075, Max budget: 0.25","type":"budget_exceeded","param":null,"code":"400"}}`, model.ClassQuota},
		{"litellm user budget", 429, `{"error":{"message":"LiteLLM User: engineer-1, exceeded budget for model=m","type":"budget_exceeded","param":null,"code":"429"}}`, model.ClassQuota},
		{"litellm cooldown", 429, `{"error":{"message":"No deployments available for selected model, Try again in 60 seconds. Passed model=m.","type":"None","param":"None","code":"429"}}`, model.ClassRateLimit},
		{"litellm model", 400, `{"error":{"message":"{'error': '/chat/completions: Invalid model name passed in model=foo. Call /v1/models to view available models for your key.'}","type":"None","param":"None","code":"400"}}`, model.ClassModelNotFound},

		{"together context", 422, `{"error":{"message":"Input validation error: ` + "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`" + `","type":"invalid_request_error","param":null,"code":null}}`, model.ClassContextOverflow},
		{"together overloaded", 503, `{"error":{"message":"The server is overloaded or not ready yet.","type":"server_error","param":null,"code":null}}`, model.ClassOverloaded},
		{"together rate", 429, `{"error":{"message":"You have been rate limited. Your rate limit is 60 queries per minute.","type":"credit_limit","param":null,"code":"rate_limit"}}`, model.ClassRateLimit},
		{"groq tokens", 429, `{"error":{"message":"Rate limit reached for model m in organization o service tier on_demand on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.","type":"tokens","code":"rate_limit_exceeded"}}`, model.ClassRateLimit},
		{"groq too large", 413, `{"error":{"message":"Request too large for model m in organization o on tokens per minute (TPM): Limit 6000, Requested 14368, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}`, model.ClassRequestTooLarge},
		{"groq call", 400, `{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=x>"}}`, model.ClassMalformed},
		{"groq capacity", 498, `{"error":{"message":"Flex tier capacity exceeded","type":"capacity","code":"capacity_exceeded"}}`, model.ClassOverloaded},
		{"deepseek balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, model.ClassQuota},
		{"deepseek key", 401, `{"error":{"message":"Authentication Fails (no such user)","type":"authentication_error","param":null,"code":"invalid_request_error"}}`, model.ClassAuth},
		{"deepseek risk", 400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error","code":"content_policy_violation"}}`, model.ClassContentPolicy},
		{"moonshot balance", 429, `{"error":{"message":"Your account is suspended due to insufficient balance, please recharge your account","type":"exceeded_current_quota_error"}}`, model.ClassQuota},
		{"mistral rate", 429, `{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300","raw_status_code":429}`, model.ClassRateLimit},
		{"mistral capacity", 429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}`, model.ClassRateLimit},
		{"mistral context", 400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`, model.ClassContextOverflow},
		{"mistral key", 401, `{"detail":"Unauthorized"}`, model.ClassAuth},
		{"fireworks suspended", 412, `{"error":{"message":"Account a is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.","param":null,"code":"PRECONDITION_FAILED","type":"error"}}`, model.ClassQuota},
		{"fireworks context", 400, `{"error":{"object":"error","type":"invalid_request_error","code":"invalid_request_error","message":"The prompt is too long: 140000, model maximum context length: 131071"}}`, model.ClassContextOverflow},
		{"nim rate", 429, `{"status":429,"title":"Too Many Requests"}`, model.ClassRateLimit},
		{"dashscope filter", 400, `{"error":{"code":"data_inspection_failed","param":null,"message":"Input data may contain inappropriate content.","type":"data_inspection_failed"}}`, model.ClassContentPolicy},

		{"github models", 413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens.","details":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`, model.ClassRequestTooLarge},
		{"anthropic size", 413, `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, model.ClassRequestTooLarge},
		{"anthropic long context", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."},"request_id":"req_011"}`, model.ClassRequestTooLarge},
		{"anthropic context", 413, `{"type":"error","error":{"type":"invalid_request_error","message":"Prompt is too long"}}`, model.ClassContextOverflow},
		{"anthropic rate", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute."}}`, model.ClassRateLimit},
		{"anthropic usage", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."},"request_id":"req_011"}`, model.ClassQuota},
		{"anthropic usage through litellm", 400, `{"error":{"message":"litellm.BadRequestError: AnthropicException - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.\"}}. Received Model Group=claude\nAvailable Model Group Fallbacks=None","type":"invalid_request_error","param":null,"code":"400"}}`, model.ClassQuota},
		{"groq too large through litellm", 429, `{"error":{"message":"litellm.RateLimitError: RateLimitError: GroqException - {\"error\":{\"message\":\"Request too large for model ` + "`m`" + ` in organization ` + "`o`" + ` on tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size and try again.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}","type":"throttling_error","param":null,"code":"429"}}`, model.ClassRequestTooLarge},

		{"aws throttling", 400, `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Rate exceeded"}`, model.ClassRateLimit},
		{"bedrock throttling", 400, `{"message":"Too many tokens, please wait before trying again."}`, model.ClassRateLimit},
		{"bedrock throttling through litellm", 400, `{"error":{"message":"litellm.BadRequestError: BedrockException - {\"message\":\"An error occurred (ThrottlingException) when calling the Converse operation\"}","code":"400"}}`, model.ClassRateLimit},
		{"bedrock model", 424, `{"message":"The system encountered an unexpected error during processing. Try your request again.","originalStatusCode":500}`, model.ClassServer},
		{"bedrock model name", 400, `{"message":"The provided model identifier is invalid."}`, model.ClassModelNotFound},
		{"bedrock context", 400, `{"message":"Input is too long for requested model."}`, model.ClassContextOverflow},
		{"tgi generation", 424, `{"error":"Request failed during generation: CUDA error","error_type":"generation"}`, model.ClassServer},

		{"a tool that was not found", 400, `{"error":{"message":"The model called a tool 'get_weather' that was not found in the list of tools.","type":"invalid_request_error","code":"invalid_tool_call"}}`, model.ClassBadRequest},
		{"a function that does not exist", 400, `{"error":{"message":"the model called \"lookup\", which does not exist"}}`, model.ClassBadRequest},
		{"a file of a model", 400, `{"error":{"message":"model tried to read /data/x: file not found"}}`, model.ClassBadRequest},
		{"model named", 400, `{"error":{"message":"Model named 'x/y-7b:free' could not be found"}}`, model.ClassModelNotFound},
		{"model first", 400, `{"error":{"message":"model not found: x"}}`, model.ClassModelNotFound},
		{"model quoted", 400, `{"error":{"message":"The model ` + "`x`" + ` does not exist"}}`, model.ClassModelNotFound},

		{"nginx too large", 413, "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>", model.ClassRequestTooLarge},
		{"nginx", 502, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>", model.ClassServer},
		{"cloudflare origin", 521, "error code: 521", model.ClassServer},
		{"cloudflare timeout", 524, "error code: 524", model.ClassTimeout},
		{"a proxy in front of nothing", 503, "upstream connect error or disconnect/reset before headers. reset reason: connection failure", model.ClassOverloaded},
		{"gateway timeout", 504, "", model.ClassTimeout},
		{"a broken server that talks of context", 500, `{"error":"failed to allocate the context window"}`, model.ClassServer},
		{"a broken server that talks of limits", 500, `{"error":"rate limit store is down"}`, model.ClassServer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := open(t, model.Config{Settings: model.Settings{BaseURL: says(t, tt.status, tt.body)}}).Complete(t.Context(), model.Request{Messages: hello})
			if e := asError(t, err); e.Class != tt.want {
				t.Errorf("class = %s, want %s; the error is %v", e.Class, tt.want, e)
			}
		})
	}
}

// TestWish reads how long a server wants to be left alone, from wherever it says so.
func TestWish(t *testing.T) {
	tests := []struct {
		name   string
		header map[string]string
		body   string
		want   time.Duration
	}{
		{"header", map[string]string{"Retry-After": "7"}, "", 7 * time.Second},
		{"header before words", map[string]string{"Retry-After": "7"}, `{"error":"Please try again in 2s"}`, 7 * time.Second},
		{"limit used up", map[string]string{"X-Ratelimit-Limit-Requests": "100", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m30s"}, "", 90 * time.Second},
		{"limit not used up", map[string]string{"X-Ratelimit-Limit-Requests": "100", "X-Ratelimit-Remaining-Requests": "3", "X-Ratelimit-Reset-Requests": "1m30s"}, "", 0},
		{"openai", nil, `{"error":{"message":"Rate limit reached. Please try again in 120ms. Visit"}}`, 120 * time.Millisecond},
		{"groq", nil, `{"error":{"message":"Please try again in 4.77s. Need more tokens?"}}`, 4770 * time.Millisecond},
		{"hours", nil, `{"error":{"message":"Please try again in 4h36m54.72s."}}`, 4*time.Hour + 36*time.Minute + 54720*time.Millisecond},
		{"azure", nil, `{"error":{"code":"429","message":"Please retry after 6 seconds."}}`, 6 * time.Second},
		{"litellm", nil, `{"error":{"message":"No deployments available, Try again in 60 seconds. Passed model=m"}}`, time.Minute},
		{"gemini", nil, `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"a"},{"retryDelay":"17s"}]}}]`, 17 * time.Second},
		{"openrouter", map[string]string{"Date": "Thu, 06 Mar 2025 23:19:40 GMT"}, `{"error":{"message":"Rate limit exceeded: free-models-per-min. ","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1741303200000"},"provider_name":null}},"user_id":"u"}`, 20 * time.Second},
		{"openrouter through litellm", map[string]string{"Date": "Thu, 06 Mar 2025 23:19:40 GMT"}, `{"error":{"message":"litellm.RateLimitError: RateLimitError: OpenrouterException - {\"error\":{\"code\":429,\"metadata\":{\"headers\":{\"X-RateLimit-Reset\":\"1741303200000\"}}}}","code":"429"}}`, 20 * time.Second},
		{"a reset that is over", map[string]string{"Date": "Thu, 06 Mar 2025 23:21:40 GMT"}, `{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Reset":"1741303200000"}}}}`, 0},
		{"nonsense", nil, `[{"error":{"code":429,"message":"retry in 99999999999999999999h","details":[{"retryDelay":"-3s"}]}}]`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(http.StatusTooManyRequests)
				io.WriteString(w, tt.body)
			})
			_, err := open(t, model.Config{Settings: model.Settings{BaseURL: url}}).Complete(t.Context(), model.Request{Messages: hello})
			if e := asError(t, err); e.RetryAfter != tt.want {
				t.Errorf("RetryAfter = %v, want %v", e.RetryAfter, tt.want)
			}
		})
	}
}

// TestProviderSaid has a gateway that says nothing itself.
func TestProviderSaid(t *testing.T) {
	body := `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"slow down, please\"}}","provider_name":"BaseTen"}}}`
	_, err := open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 429, body)}}).Complete(t.Context(), model.Request{Messages: hello})
	if e := asError(t, err); !strings.Contains(e.Message, "BaseTen: slow down, please") {
		t.Errorf("message = %q, want what the provider said", e.Message)
	}
}

// TestLongMessages cuts what servers say between two characters, whatever is in it.
func TestLongMessages(t *testing.T) {
	for _, said := range []string{strings.Repeat("é", 5000), "x" + strings.Repeat("世", 5000), strings.Repeat("\xff", 5000) + strings.Repeat("é", 5000)} {
		for _, body := range []string{`{"error":{"message":"` + said + `"}}`, said} {
			client := open(t, model.Config{Settings: model.Settings{BaseURL: endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				io.WriteString(w, body)
			})}})
			_, err := client.Complete(t.Context(), model.Request{Messages: hello})
			if failed := asError(t, err); !utf8.ValidString(failed.Message) || len(failed.Message) > 700 || strings.Contains(failed.Message, `\x`) {
				t.Errorf("message of %d bytes: %q", len(failed.Message), failed.Message)
			}
		}
	}
}
