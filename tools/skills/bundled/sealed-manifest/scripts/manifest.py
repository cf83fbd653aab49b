#!/usr/bin/env python3
"""Makes and checks sealed manifests: manifest.py make|check FOLDER"""
import hashlib
import os
import sys

job, folder = sys.argv[1:3]
path = os.path.join(folder, "MANIFEST")


def entries():
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            whole = os.path.join(at, name)
            if whole != path:
                with open(whole, "rb") as f:
                    data = f.read()
                digest = hashlib.blake2b(data, digest_size=6, person=b"delivery").hexdigest()
                found[os.path.relpath(whole, folder)] = f"{len(data)} {digest}"
    return found


def seal(lines):
    return "seal " + hashlib.sha256(("\n".join(lines) + "\n").encode()).hexdigest()[:16]


if job == "make":
    lines = [f"{entry} {name}" for name, entry in sorted(entries().items())]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines + [seal(lines)]) + "\n")
else:
    with open(path, encoding="utf-8") as f:
        *lines, last = f.read().splitlines()
    if last != seal(lines):
        print("broken seal")
    listed = {name: f"{size} {digest}" for size, digest, name in (line.split(" ", 2) for line in lines)}
    there = entries()
    for name in sorted(listed.keys() | there.keys()):
        if name not in there:
            print("missing", name)
        elif name not in listed:
            print("extra", name)
        elif listed[name] != there[name]:
            print("changed", name)
