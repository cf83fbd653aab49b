#!/usr/bin/env python3
"""Makes and checks shelf codes: label.py code DD ROOM SHELF BOX, or label.py check CODE..."""
import re
import sys

LETTERS = "ACDEFHJKLMNPRTUVWXY"  # none that looks like another


def code(department, room, shelf, box):
    body = f"{department}-{int(room):02d}{int(shelf):02d}-{int(box):03d}"
    signs = body.replace("-", "")
    total = sum((i + 2) * int(sign, 36) for i, sign in enumerate(signs))
    return f"{body}-{LETTERS[total % len(LETTERS)]}"


if sys.argv[1] == "code":
    print(code(*sys.argv[2:6]))
else:
    for text in sys.argv[2:]:
        parts = re.fullmatch(r"([A-Z]{2})-(\d\d)(\d\d)-(\d{3})-([A-Z])", text)
        good = parts and code(*parts.groups()[:4]) == text
        print(text, "ok" if good else "wrong")
