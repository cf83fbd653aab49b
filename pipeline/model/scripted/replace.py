# Replaces exact text, once unless all are wanted; the line ends of the file stay.
import os

path = os.path.expanduser(path)
with open(path, encoding="utf-8", newline="") as f:
    text = f.read()
if old not in text and "\r\n" in text:
    old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
found = text.count(old)
if found == 0 or (found > 1 and not all):
    raise SystemExit(f"{path}: {found} matches")
with open(path, "w", encoding="utf-8", newline="") as f:
    f.write(text.replace(old, new))
print(f"{path}: replaced {found}")
