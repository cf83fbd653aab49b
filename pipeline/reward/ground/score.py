# Runs a scorer: a module with score(answer, conversation, calls). What that prints goes to standard error, so that the reward is
# the last and only line of standard output.
import importlib.util
import json
import os
import sys


def read(variable):
    with open(os.environ[variable], encoding="utf-8") as file:
        return file.read()


def plain(reward):
    if isinstance(reward, dict):
        return {name: plain(value) for name, value in reward.items()}
    return float(reward)


def main(path):
    verdict = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[0] = os.path.dirname(path)
    sys.path.append(os.getcwd())
    spec = importlib.util.spec_from_file_location("scorer", path)
    scorer = sys.modules["scorer"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    reward = scorer.score(read("ANSWER_FILE"), json.loads(read("CONVERSATION_FILE")), json.loads(read("CALLS_FILE")))
    sys.stdout.flush()
    print(json.dumps(plain(reward)), file=verdict, flush=True)


main(sys.argv[1])
