// Speaks with `trajgen serve-model` through OpenAI's own client: models, chat, tools, parallel tools, streams, errors
// and the client's retries.
//
//   node check.mjs bin/trajgen
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const [program] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'openai-check-'));
const dataset = join(scratch, 'tasks.jsonl');
writeFileSync(dataset, JSON.stringify({
  id: 'weather', prompt: 'What is the weather in Zürich and in Genève?',
  gold: [
    { content: 'I ask for both.', reasoning: 'Two places, two calls.', tool_calls: [
      { name: 'weather', arguments: { place: 'Zürich' } }, { name: 'weather', arguments: { place: 'Genève', unit: 'K' } }] },
    { content: 'Fog in Zürich ☁, sun in Genève.' },
  ],
}) + '\n');
const key = 'sk-check-0123456789';

// served runs the server with these flags, and what is done with it.
let checks = 0;
async function served(flags, use) {
  const server = spawn(program, ['serve-model', '--policy', 'oracle', '--dataset', dataset, '--addr', '127.0.0.1:0', '--api-key-env', 'CHECK_KEY', ...flags],
    { env: { ...process.env, CHECK_KEY: key }, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const baseURL = await new Promise((resolve, reject) => {
      createInterface(server.stdout).once('line', resolve);
      server.once('exit', (code) => reject(new Error(`serve-model ended with ${code}`)));
    });
    const open = (options) => new OpenAI({ apiKey: key, baseURL, maxRetries: 0, ...options });
    await use(open(), open, baseURL);
    checks++;
  } finally {
    server.kill('SIGINT');
    await new Promise((resolve) => (server.exitCode === null ? server.once('exit', resolve) : resolve()));
  }
}

const tools = [{
  type: 'function',
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { place: { type: 'string' }, unit: { type: 'string', enum: ['C', 'K'] } }, required: ['place', 'unit'] },
  },
}];
const question = { model: 'scripted', messages: [{ role: 'user', content: 'What is the weather in Zürich and in Genève?' }], tools };
const fault = (spec) => ({ headers: { 'X-Scripted-Fault': spec } });

async function chat(client) {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.deepEqual(ids, ['scripted']);
  assert.equal((await client.models.retrieve('scripted')).object, 'model');

  const first = await client.chat.completions.create(question);
  const [{ message, finish_reason }] = first.choices;
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(message.content, 'I ask for both.');
  assert.equal(message.reasoning_content, 'Two places, two calls.');
  assert.deepEqual(message.tool_calls.map((call) => [call.type, call.function.name, JSON.parse(call.function.arguments)]),
    [['function', 'weather', { place: 'Zürich' }], ['function', 'weather', { place: 'Genève', unit: 'K' }]]);
  assert.equal(first.usage.total_tokens, first.usage.prompt_tokens + first.usage.completion_tokens);

  const results = message.tool_calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: '{"sky":"?"}' }));
  const second = await client.chat.completions.create({ ...question, messages: [...question.messages, message, ...results] });
  assert.equal(second.choices[0].message.content, 'Fog in Zürich ☁, sun in Genève.');
  assert.equal(second.choices[0].finish_reason, 'stop');
  assert.equal(second.usage.prompt_tokens_details.cached_tokens, first.usage.prompt_tokens);

  const one = await client.chat.completions.create({ ...question, parallel_tool_calls: false });
  assert.equal(one.choices[0].message.tool_calls.length, 1);
  const none = await client.chat.completions.create({ ...question, tool_choice: 'none' });
  assert.equal(none.choices[0].message.tool_calls, undefined);
  const forced = await client.chat.completions.create({ ...question, messages: [...question.messages, message, ...results], tool_choice: 'required' });
  assert.deepEqual(JSON.parse(forced.choices[0].message.tool_calls[0].function.arguments), { place: '', unit: 'C' });
  const short = await client.chat.completions.create({ ...question, tool_choice: 'none', max_completion_tokens: 20 });
  assert.equal(short.choices[0].finish_reason, 'length');
  assert.ok(short.usage.completion_tokens <= 20);
}

async function streams(client) {
  const whole = await client.chat.completions.create(question);
  const stream = await client.chat.completions.create({ ...question, stream: true, stream_options: { include_usage: true } });
  const message = { content: '', tool_calls: [] };
  let usage, finish;
  for await (const chunk of stream) {
    usage ??= chunk.usage;
    const [choice] = chunk.choices;
    if (!choice) continue;
    finish = choice.finish_reason ?? finish;
    message.content += choice.delta.content ?? '';
    for (const delta of choice.delta.tool_calls ?? []) {
      const call = (message.tool_calls[delta.index] ??= { arguments: '' });
      call.id ??= delta.id;
      call.name ??= delta.function.name;
      call.arguments += delta.function.arguments ?? '';
    }
  }
  const want = whole.choices[0].message;
  assert.equal(finish, 'tool_calls');
  assert.equal(message.content, want.content);
  assert.deepEqual(message.tool_calls, want.tool_calls.map((call) => ({ id: call.id, ...call.function })));
  assert.deepEqual(usage, whole.usage);

  // The client's own assembly of a stream.
  const final = await client.chat.completions.stream(question).finalChatCompletion();
  assert.deepEqual(final.choices[0].message.tool_calls.map((call) => call.function.arguments), want.tool_calls.map((call) => call.function.arguments));

  const ids = await client.chat.completions.create({ ...question, logprobs: true, top_logprobs: 2, return_token_ids: true });
  assert.equal(ids.prompt_token_ids.length, ids.usage.prompt_tokens);
  assert.equal(ids.choices[0].token_ids.length, ids.usage.completion_tokens);
  assert.equal(ids.choices[0].logprobs.content.length, ids.usage.completion_tokens);
  assert.equal(ids.choices[0].logprobs.content[0].top_logprobs.length, 2);

  await assert.rejects(async () => {
    for await (const _ of await client.chat.completions.create({ ...question, stream: true }, fault('error')));
  }, OpenAI.APIError);
}

async function errors(client, open) {
  const refused = async (spec, kind, status, code) => {
    const error = await client.chat.completions.create(question, fault(spec)).then(() => assert.fail(spec), (e) => e);
    assert.ok(error instanceof kind, `${spec}: ${error}`);
    assert.equal(error.status, status);
    if (code) assert.equal(error.code, code);
    return error;
  };
  await refused('429;retry-after=7', OpenAI.RateLimitError, 429, 'rate_limit_exceeded').then((e) => assert.equal(e.headers.get('retry-after'), '7'));
  await refused('quota', OpenAI.RateLimitError, 429, 'insufficient_quota');
  await refused('auth', OpenAI.AuthenticationError, 401, 'invalid_api_key');
  await refused('policy', OpenAI.BadRequestError, 400, 'content_policy_violation');
  await refused('context', OpenAI.BadRequestError, 400, 'context_length_exceeded');
  await refused('403', OpenAI.PermissionDeniedError, 403);
  await refused('404', OpenAI.NotFoundError, 404);
  await refused('409', OpenAI.ConflictError, 409);
  await refused('422', OpenAI.UnprocessableEntityError, 422);
  await refused('500', OpenAI.InternalServerError, 500);
  await refused('503', OpenAI.InternalServerError, 503);
  await refused('reset', OpenAI.APIConnectionError);
  await assert.rejects(open({ apiKey: 'wrong' }).models.list(), OpenAI.AuthenticationError);
  await assert.rejects(client.chat.completions.create({ ...question, model: 'other' }), OpenAI.NotFoundError);
  await assert.rejects(client.chat.completions.create({ ...question, n: 2 }), OpenAI.BadRequestError);
  await assert.rejects(open({ timeout: 50 }).chat.completions.create(question, fault('slow;delay=60s')), OpenAI.APIConnectionTimeoutError);

  const patient = open({ maxRetries: 3 });
  const reply = await patient.chat.completions.create(question, fault('429;retry-after=0;times=2'));
  assert.equal(reply.choices[0].message.tool_calls.length, 2);
}

async function refusals(client) {
  const all = await Promise.allSettled([1, 2, 3].map(() => client.chat.completions.create(question)));
  const refused = all.filter((one) => one.status === 'rejected').map((one) => one.reason);
  assert.equal(refused.length, 1, 'a burst of two lets two of three in');
  assert.ok(refused[0] instanceof OpenAI.RateLimitError);
  const headers = refused[0].headers;
  assert.equal(headers.get('x-ratelimit-limit-requests'), '2');
  assert.equal(headers.get('x-ratelimit-remaining-requests'), '0');
  assert.match(headers.get('x-ratelimit-reset-requests'), /^3m[\d.]+s$/);
  assert.ok(Number(headers.get('retry-after-ms')) > 90_000);
}

async function patience(client, open, baseURL) {
  const patient = open({ maxRetries: 9 }); // it reads retry-after-ms
  await Promise.all([1, 2, 3, 4].map(() => patient.chat.completions.create(question)));
  const stats = await (await fetch(new URL('/stats', baseURL))).json();
  assert.equal(stats.by_status['200'], 4);
  assert.equal(stats.by_status['429'] ?? 0, stats.refused);
  assert.equal(stats.requests, 4 + stats.refused);
  await assert.rejects(patient.chat.completions.create({ ...question, max_tokens: 10_000 }), { status: 400, code: 'context_length_exceeded' });
}

try {
  await served([], async (...given) => {
    await chat(...given);
    await streams(...given);
    await errors(...given);
  });
  await served(['--rate', '0.01', '--burst', '2'], refusals);
  await served(['--rate', '50', '--burst', '2', '--context', '4096'], patience);
  await served(['--tool-format', 'hermes', '--reasoning', 'tags'], async (client) => {
    const { content, tool_calls } = (await client.chat.completions.create(question)).choices[0].message;
    assert.equal(tool_calls, undefined);
    assert.match(content, /^<think>\n[^]*<\/think>\n\nI ask for both\.\n<tool_call>\n\{"name": "weather", "arguments": \{"place":"Zürich"\}\}\n<\/tool_call>\n<tool_call>/);
  });
  console.log(`OpenAI's client agrees with serve-model under ${checks} settings`);
} finally {
  rmSync(scratch, { recursive: true });
}
