#!/usr/bin/env python3
"""Makes a .hand file of a CSV file: handover.py IN.csv OUT.hand"""
import csv
import re
import sys
from decimal import Decimal

with open(sys.argv[1], newline="", encoding="utf-8") as f:
    rows = list(csv.reader(f))
head, body = rows[0], sorted(rows[1:], key=lambda row: row[0])


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def money(number):
    return f"{number:.2f}".replace(".", ",")


# A column of numbers has a decimal point somewhere; ids have none.
sums = [
    all(is_number(row[i]) for row in body) and any("." in row[i] for row in body) for i in range(len(head))
]


def shown(i, text):
    date = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text)
    if date:
        return f"{date[3]}.{date[2]}.{date[1]}"
    return money(Decimal(text)) if sums[i] else text


lines = [";".join(name.upper() for name in head)]
lines += [";".join(shown(i, text) for i, text in enumerate(row)) for row in body]
totals = [money(sum(Decimal(row[i]) for row in body)) if sums[i] else "" for i in range(len(head))]
lines.append("#SUM;" + ";".join(totals))
digits = sum(int(c) for line in lines for c in line if c in "0123456789")
lines.append(f"#CHK;{digits % 97:02d}")
with open(sys.argv[2], "w", encoding="utf-8", newline="\n") as out:
    out.write("\n".join(lines) + "\n")
