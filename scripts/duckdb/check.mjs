// Reads a run's Parquet files with DuckDB, a reader that shares no code with the writer, and compares what it finds
// with the JSON Lines export of the same journal. Of its first episodes, exports to hf, arrow and verl are read, too: Arrow
// by its JavaScript library.
//
//   node check.mjs RUN_DIRECTORY EXPORT.jsonl HF_DIRECTORY ARROW_DIRECTORY VERL.parquet
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { DuckDBInstance } from '@duckdb/node-api';
import { CompressionType, compressionRegistry, tableFromIPC } from 'apache-arrow';
import { decompress } from 'fzstd';

const [run, exported, hub, arrow, verl] = process.argv.slice(2);
const want = readFileSync(exported, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const query = async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson();

const rows = await query(`select episode_id, row, sample, toolsets, log_p, outcome, reward, answer, messages, tools, usage
  from read_parquet('${run}/trajectories/*.parquet')`);
assert.equal(rows.length, want.length, 'episodes');
rows.forEach((row, i) => {
  const ep = want[i];
  assert.equal(row.episode_id, ep.id);
  assert.equal(Number(row.sample), ep.key.sample);
  assert.deepEqual(row.toolsets, ep.toolsets);
  assert.equal(row.outcome, ep.outcome);
  assert.equal(row.reward, ep.reward);
  assert.equal(row.answer, ep.answer ?? '');
  assert.equal(row.tools.length, (ep.tools ?? []).length);
  row.tools.forEach((tool, j) => assert.deepEqual(JSON.parse(tool), ep.tools[j]));
  assert.equal(row.messages.length, ep.messages.length);
  row.messages.forEach((message, j) => {
    const said = ep.messages[j];
    assert.equal(message.role, said.role);
    assert.equal(message.content, said.content);
    assert.deepEqual(message.tool_calls ?? [], (said.tool_calls ?? []).map((call) => ({ cut: false, sent: null, ...call })));
  });
});

const calls = await query(`select episode_id, call_id, tool, raw_arguments, result, status, error_class
  from read_parquet('${run}/tool_calls/*.parquet')`);
const made = want.flatMap((ep) => (ep.calls ?? []).map((call) => ({ ...call, episode: ep.id })));
assert.equal(calls.length, made.length, 'tool calls');
calls.forEach((call, i) => {
  assert.equal(call.episode_id, made[i].episode);
  assert.equal(call.call_id, made[i].id);
  assert.equal(call.tool, made[i].name);
  assert.equal(call.raw_arguments, made[i].raw_arguments);
  assert.equal(call.result, made[i].result);
  assert.equal(call.status, made[i].status);
  assert.equal(call.error_class, made[i].error_class || null);
});

const [nested] = await query(`select count(*) as n from (
  select unnest(m.tool_calls) as call from (
    select unnest(messages) as m from read_parquet('${run}/trajectories/*.parquet')))`);
assert.equal(Number(nested.n), want.flatMap((ep) => ep.messages.flatMap((m) => m.tool_calls ?? [])).length, 'nested calls');
console.log(`DuckDB read ${rows.length} episodes and ${calls.length} tool calls, nested columns equal`);

// The Hub's readers find the files by the card.
const card = readFileSync(`${hub}/README.md`, 'utf8');
const tables = [...card.matchAll(/config_name: (\w+)\n    data_files:\n      - split: train\n        path: (\S+)/g)];
assert.deepEqual(tables.map(([, name]) => name), ['trajectories', 'tool_calls']);
const said = [...card.matchAll(/num_examples: (\d+)/g)].map(([, n]) => Number(n));
const first = want.slice(0, said[0]);
for (const [i, [, name, path]] of tables.entries()) {
  const [{ n }] = await query(`select count(*) as n from read_parquet('${hub}/${path}')`);
  assert.equal(Number(n), said[i], `rows of ${name} on the card`);
}
const ids = await query(`select episode_id as id, reward from read_parquet('${hub}/${tables[0][2]}')`);
assert.deepEqual(ids, first.map((ep) => ({ id: ep.id, reward: ep.reward })), 'episodes of the dataset folder');

// The library wants each buffer at the start of its memory.
compressionRegistry.set(CompressionType.ZSTD, { decode: (data) => decompress(data).slice() });
const played = tableFromIPC(readFileSync(`${arrow}/trajectories.arrow`));
const traced = tableFromIPC(readFileSync(`${arrow}/tool_calls.arrow`));
assert.equal(played.numRows, first.length, 'episodes in Arrow');
first.forEach((ep, i) => {
  const row = played.get(i);
  assert.equal(row.episode_id, ep.id);
  assert.equal(row.reward, ep.reward);
  assert.deepEqual([...row.toolsets], ep.toolsets);
  assert.deepEqual([...row.messages].map((m) => m.content), ep.messages.map((m) => m.content));
  assert.deepEqual([...row.messages].flatMap((m) => [...m.tool_calls]).map((call) => call.arguments),
    ep.messages.flatMap((m) => m.tool_calls ?? []).map((call) => call.arguments));
});
assert.deepEqual([...traced].map((call) => call.result), first.flatMap((ep) => ep.calls ?? []).map((call) => call.result));
console.log(`Arrow's own library read ${played.numRows} episodes and ${traced.numRows} tool calls, equal`);

// verl looks into a struct for the arguments of each tool that its configuration has.
const tasks = await query(`select id, prompt, extra_info.tools_kwargs.terminal.create_kwargs.task_id as task from read_parquet('${verl}')`);
assert.deepEqual(tasks.map((task) => task.id), [...new Set(first.map((ep) => ep.key.task))], 'tasks for verl');
tasks.forEach((task) => {
  const ep = first.find((ep) => ep.key.task === task.id);
  assert.equal(task.task, task.id);
  assert.equal(task.prompt.at(-1).content, ep.messages.findLast((m, i) => m.role === 'user' && i < task.prompt.length).content);
});
console.log(`DuckDB read ${said.join(' and ')} rows of the dataset folder, as its card says, and ${tasks.length} tasks for verl`);
