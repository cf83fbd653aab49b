"""An MCP server over standard input and output, without any library: it counts the words of a file."""

import json
import os
import sys

TOOL = {
    "name": "count_words",
    "description": "Counts the words of a text file in the working directory.",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Path of the file."}},
        "required": ["path"],
    },
    "annotations": {"readOnlyHint": True, "idempotentHint": True},
}


def call(arguments):
    path = os.path.join(os.environ["TRAJGEN_WORKDIR"], arguments["path"])
    try:
        with open(path, encoding="utf-8") as file:
            words = len(file.read().split())
    except OSError as error:
        return {"isError": True, "content": [{"type": "text", "text": str(error)}]}
    return {"content": [{"type": "text", "text": f"{words} words"}], "structuredContent": {"words": words}}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "words", "version": "1.0"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return call(params["arguments"])
    return {} if method == "ping" else None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue  # a notice
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    result = answer(request.get("method"), request.get("params"))
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
