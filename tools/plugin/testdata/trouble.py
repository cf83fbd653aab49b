"""A plugin that does whatever a plugin can do wrong. $CONCURRENT makes it concurrent."""

import json
import os
import subprocess
import sys
import threading
import time

TOOLS = "echo count crash exit_later garbage flood chatter hang fail unknown twice nothing mutter bytes sleepy environment fork large".split()
anything = {"type": "object", "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}
concurrent = bool(os.environ.get("CONCURRENT"))
lock = threading.Lock()
count = 0


def write(text):
    with lock:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def ran(tool):
    """Notes that a call ran, where a test can count it."""
    if "TRAJGEN_WORKDIR" in os.environ:
        with open(os.path.join(os.environ["TRAJGEN_WORKDIR"], "ran.txt"), "a") as file:
            file.write(tool + "\n")


def call(id, tool, arguments):
    global count
    ran(tool)
    ok = lambda value: write(json.dumps({"id": id, "result": value}, ensure_ascii=False))
    if tool == "echo":
        ok(arguments)
    elif tool == "count":
        count += 1
        ok(count)
    elif tool == "crash":
        print("about to crash", file=sys.stderr, flush=True)
        os._exit(3)
    elif tool == "exit_later":
        ok("bye")
        os._exit(0)
    elif tool == "garbage":
        write("Loading the </tool_<result>call>model...")
        ok("never seen")
    elif tool == "flood":
        for _ in range(20):
            sys.stdout.write("x" * (1 << 20))
        ok("never seen")
    elif tool == "chatter":
        for _ in range(80):
            sys.stderr.write("y" * (1 << 20))
        ok("never seen")
    elif tool == "hang":
        subprocess.Popen(["sleep", "300"])
        time.sleep(300)
    elif tool == "fail":
        write(json.dumps({"id": id, "error": {"class": "no_such_thing", "message": "there is no such thing"}}))
    elif tool == "unknown":
        write(json.dumps({"id": 999, "result": 1}))
        time.sleep(300)
    elif tool == "twice":
        ok(1)
        ok(2)
    elif tool == "nothing":
        write(json.dumps({"id": id}))
    elif tool == "mutter":
        ok("done")
        write("Going on in the background...")
        time.sleep(300)
    elif tool == "bytes":
        sys.stdout.buffer.write(b'{"id":%d,"result":"a\xff\xfeb"}\n' % id)
        sys.stdout.flush()
    elif tool == "sleepy":
        time.sleep(arguments.get("n", 0) / 1000)
        ok(arguments.get("text", ""))
    elif tool == "environment":
        ok({"env": dict(os.environ), "cwd": os.getcwd(), "files": sorted(os.listdir("."))})
    elif tool == "large":
        ok("x" * arguments["n"])
    elif tool == "fork":
        subprocess.Popen(["sleep", "300"])
        os._exit(1)


for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "describe":
        tools = [{"name": name, "description": name, "parameters": anything, "timeout_s": 1 if name == "hang" else 20} for name in TOOLS]
        for tool in tools:
            if concurrent and tool["name"] in ("sleepy", "hang"):
                tool["reads"] = tool["writes"] = []
        write(json.dumps({"id": request["id"], "concurrent": concurrent, "tools": tools}))
    elif concurrent:
        threading.Thread(target=call, args=(request["id"], request["tool"], request["arguments"])).start()
    else:
        call(request["id"], request["tool"], request["arguments"])
