"""The episode's tools as functions. Each returns the tool's result as a dict; "error" tells of a failure."""

import json
import os
import shlex
import socket
import threading
import time

_lock = threading.Lock()
_stream = None
_owner = os.getpid()


def _call(tool, args):
    global _stream
    args = dict(args)
    args.update(args.pop("others", {}))  # those that Python cannot name
    args = {name: value for name, value in args.items() if value is not None}
    request = json.dumps({"tool": tool, "args": args}) + "\n"
    if os.getpid() != _owner:
        return {"error": "tools can only be called from the script's first process"}
    with _lock:
        try:
            if _stream is None:
                os.set_inheritable(3, False)
                _stream = socket.socket(fileno=3).makefile("rwb")
            _stream.write(request.encode("utf-8", "surrogatepass"))
            _stream.flush()
            reply = _stream.readline()
        except OSError as err:
            return {"error": "the tool connection is closed: %s" % err}
    if not reply:
        return {"error": "the tool connection is closed"}
    return json.loads(reply)


def json_parse(text):
    """Parse JSON, allowing control characters within strings."""
    return json.loads(text, strict=False)


def shell_quote(text):
    """Quote text as one word of a shell command."""
    return shlex.quote(text)


def retry(function, max_attempts=3, delay=2):
    """Call function until it raises no exception, doubling the delay (seconds) between attempts."""
    for attempt in range(max_attempts):
        try:
            return function()
        except Exception:
            if attempt + 1 >= max_attempts:
                raise
            time.sleep(delay * 2**attempt)


def __getattr__(name):
    if name in _KNOWN:
        have = ", ".join(_AVAILABLE) if _AVAILABLE else "no tools"
        raise ImportError("%s is not available in this episode; trajgen_tools has %s" % (name, have))
    raise AttributeError("module 'trajgen_tools' has no attribute %r" % name)
