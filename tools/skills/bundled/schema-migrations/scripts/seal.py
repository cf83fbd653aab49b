#!/usr/bin/env python3
"""Puts the seal of a migration into its header: seal.py FILE..."""
import hashlib
import re
import sys

for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as f:
        text = f.read()
    kept = [re.sub(r"\s+", " ", line.strip()) for line in text.splitlines() if not line.startswith("-- seal:")]
    seal = hashlib.sha256("\n".join(line for line in kept if line).encode()).hexdigest()[:8]
    text, found = re.subn(r"(?m)^-- seal: [0-9a-f]{8}$", f"-- seal: {seal}", text, count=1)
    if not found:
        sys.exit(f"{name}: the line -- seal: 00000000 is missing")
    with open(name, "w", encoding="utf-8") as f:
        f.write(text)
