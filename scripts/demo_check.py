"""Holds a demo's report against what was asked for: demo_check.py REPORT.json [SKILL]."""
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
skill = float(sys.argv[2]) if len(sys.argv) > 2 else 0.7
episodes, reward = report["episodes"], report["reward"]
closed = {"success", "failure", "limit", "model_error", "tool_error", "sandbox_error", "verifier_error", "cancelled"}

assert episodes["present"] >= 1000, episodes
assert episodes["missing"] == 0 and episodes["errors"] == 0, (episodes, report["faults"])
assert {o["outcome"] for o in report["outcomes"]} == closed, report["outcomes"]
assert reward["low"] <= skill <= reward["high"], reward
print(f"{episodes['present']} episodes, mean reward {reward['mean']:.3f}, "
      f"95 % interval [{reward['low']:.3f}, {reward['high']:.3f}] around skill {skill}")
