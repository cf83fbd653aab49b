// Reads a run's Parquet files with DuckDB, a reader that shares no code with the writer, and compares what it finds
// with the JSON Lines export of the same journal.
//
//   node check.mjs RUN_DIRECTORY EXPORT.jsonl
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { DuckDBInstance } from '@duckdb/node-api';

const [run, exported] = process.argv.slice(2);
const want = readFileSync(exported, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const query = async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson();

const rows = await query(`select id, row, sample, toolsets, log_p, outcome, reward, answer, messages, tools, usage
  from read_parquet('${run}/trajectories/*.parquet')`);
assert.equal(rows.length, want.length, 'episodes');
rows.forEach((row, i) => {
  const ep = want[i];
  assert.equal(row.id, ep.id);
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
    assert.deepEqual(message.tool_calls ?? [], (said.tool_calls ?? []).map((call) => ({ cut: false, ...call })));
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
