#!/usr/bin/env python3
"""A trajgen plugin in Python: tools that look at CSV files of the workspace.

Standard input has a request per line, standard output an answer per line; anything else goes to standard error.
"""

import csv
import json
import math
import os
import statistics
import sys

PATH = {"type": "string", "description": "Path of the CSV file, from the workspace on."}
COLUMN = {"type": "string", "description": "Name of the column, as in the first line."}

TOOLS = [
    {
        "name": "csv_columns",
        "description": "List the columns of a CSV file and how many rows it has.",
        "parameters": {"type": "object", "properties": {"path": PATH}, "required": ["path"]},
        "timeout_s": 30,
        "reads": ["path"],
        "writes": [],
    },
    {
        "name": "csv_summary",
        "description": "Count, mean, minimum and maximum of the numbers in a column of a CSV file.",
        "parameters": {"type": "object", "properties": {"path": PATH, "column": COLUMN}, "required": ["path", "column"]},
        "timeout_s": 30,
        "reads": ["path"],
        "writes": [],
    },
]


class Refused(Exception):
    """An error that the model can mend."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def rows(path):
    try:
        with open(os.path.join(os.environ["TRAJGEN_WORKDIR"], path), newline="") as file:
            reader = csv.DictReader(file)
            return reader.fieldnames or [], list(reader)
    except OSError as error:
        raise Refused("not_found", f"cannot read {path}: {error.strerror}")
    except (ValueError, csv.Error) as error:  # a file that is no text, a path with a zero byte
        raise Refused("not_csv", f"cannot read {path}: {error}")


def csv_columns(path):
    names, lines = rows(path)
    return {"columns": names, "rows": len(lines)}


def csv_summary(path, column):
    names, lines = rows(path)
    if column not in names:
        raise Refused("no_column", f"{path} has no column {column!r}; it has {', '.join(names)}")
    numbers = []
    for line in lines:
        try:
            number = float(line[column])
        except (TypeError, ValueError):
            continue  # counted as missing
        if math.isfinite(number):  # JSON has no other numbers
            numbers.append(number)
    if not numbers:
        raise Refused("no_numbers", f"column {column!r} of {path} has no numbers")
    return {
        "count": len(numbers),
        "missing": len(lines) - len(numbers),
        "mean": statistics.fmean(numbers),
        "min": min(numbers),
        "max": max(numbers),
    }


def answer(request):
    if request["method"] == "describe":
        return {"protocol": 1, "tools": TOOLS}
    try:
        tool = {"csv_columns": csv_columns, "csv_summary": csv_summary}[request["tool"]]
        return {"result": tool(**request["arguments"])}
    except Refused as refused:
        return {"error": {"class": refused.kind, "message": str(refused)}}


for text in sys.stdin:
    request = json.loads(text)
    print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
