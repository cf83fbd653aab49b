// Compares episodes with and without skills with DuckDB, and counts which skills were viewed, as docs/skills.md says; then the
// same with the JSON Lines export.
//
//   node skills.mjs RUN_DIRECTORY EXPORT.jsonl
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { DuckDBInstance } from '@duckdb/node-api';

const [run, exported] = process.argv.slice(2);
const episodes = readFileSync(exported, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const query = async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson();
const count = (keys) => {
  const n = new Map();
  keys.forEach((key) => n.set(key, (n.get(key) ?? 0) + 1));
  return [...n].sort();
};

const arms = await query(`select skills, count(*) as episodes, avg(reward) as reward, exp(any_value(skills_log_p)) as p
  from read_parquet('${run}/trajectories/*.parquet') group by skills order by skills`);
assert.deepEqual(arms.map((arm) => [arm.skills, Number(arm.episodes)]), count(episodes.map((ep) => ep.skills.mode)));
assert.equal(arms.length, 2, 'arms');
arms.forEach((arm) => assert.ok(Math.abs(arm.p - 0.5) < 1e-9, `probability ${arm.p}`));
const [without, withSkills] = [arms.find((arm) => arm.skills === 'without'), arms.find((arm) => arm.skills === 'with')];
assert.ok(withSkills.reward > without.reward, 'the skills help');

for (const kind of ['offered', 'viewed', 'script']) {
  const got = await query(`select e.skill as skill, count(*) as n from (
    select unnest(skill_events) as e from read_parquet('${run}/trajectories/*.parquet')) where e.kind = '${kind}' group by e.skill order by e.skill`);
  const want = count(episodes.flatMap((ep) => ep.skills.events ?? []).filter((event) => event.kind === kind).map((event) => event.skill));
  assert.ok(want.length > 0, kind);
  assert.deepEqual(got.map(({ skill, n }) => [skill, Number(n)]), want, kind);
}
console.log(`DuckDB: reward ${withSkills.reward} with skills, ${without.reward} without`);
