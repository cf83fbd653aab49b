#!/usr/bin/env python3
"""A small trainer for trajgen's rl_* tools. What it trains is one number, the skill of the scripted model: in each step it plays the
environment a little below and a little above it, and moves it to where the reward was higher."""

import json
import os
import shutil
import signal
import subprocess
import sys

config = json.load(open(os.environ["TRAJGEN_RL_CONFIG"]))
metrics = open(os.environ["TRAJGEN_RL_METRICS"], "a", buffering=1)
skill, width = config["skill"], config["width"]


def play(at, seed):
    """The mean reward of the scripted model with a skill."""
    out = f"play-{at}"
    command = [os.environ["TRAJGEN_RL_PROGRAM"], "run", "--dataset", os.environ["TRAJGEN_RL_DATASET"], "--policy", "noisy",
               "--skill", str(at), "--seed", str(seed), "--samples", str(config["group_size"]), "--out", out, "--quiet", "--json"]
    if os.environ["TRAJGEN_RL_RUN_FILE"]:
        command += ["-f", os.environ["TRAJGEN_RL_RUN_FILE"]]
    played = subprocess.run(command, stdout=subprocess.PIPE)
    if played.returncode not in (0, 3):
        sys.exit(f"the environment cannot be played: {played.returncode}")
    shutil.rmtree(out)
    return json.loads(played.stdout)["reward"]["mean"]


signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
print("ready", flush=True)
for step in range(1, config["steps"] + 1):
    below, above = max(0, round(skill - width, 3)), min(1, round(skill + width, 3))
    rewards = {at: play(at, step) for at in (below, above)}
    skill = max(rewards, key=rewards.get)
    metrics.write(json.dumps({"step": step, "reward_mean": sum(rewards.values()) / len(rewards), "percent_correct": 100 * rewards[skill], "skill": skill}) + "\n")
