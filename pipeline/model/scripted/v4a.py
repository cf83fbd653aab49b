# Applies a V4A patch whole or not at all.
import os, re


def find(lines, want, start):
    for same in (str, str.rstrip, str.strip):
        key = [same(w) for w in want]
        for i in range(start, len(lines) - len(want) + 1):
            if [same(x) for x in lines[i:i + len(want)]] == key:
                return i
    raise SystemExit("no match for " + repr(want))


files, hunk = [], None
for line in patch.partition("*** Begin Patch\n")[2].partition("\n*** End Patch")[0].split("\n"):
    directive = re.match(r"\*\*\* (?:(\w+) (?:File|to): (.*)|End of File$)", line)
    if directive:
        verb, path, hunk = directive[1], directive[2], None
        if verb == "Move" and " -> " not in path:
            files[-1]["to"] = path.strip()
        elif verb:
            path, _, to = path.partition(" -> ")
            files.append({"kind": verb, "path": path.strip(), "to": to.strip(), "hunks": []})
        continue
    if hunk is None or line.startswith("@@") and files[-1]["kind"] != "Add":
        hunk = {"hint": "", "old": [], "new": []}
        files[-1]["hunks"].append(hunk)
    if line.startswith("@@") and files[-1]["kind"] != "Add":
        hunk["hint"] = re.sub(r"\s*@@$", "", line[2:]).strip()
        continue
    mark, text = line[:1] or " ", line[1:]  # an empty line is an empty line of context
    if mark not in " +-":
        raise SystemExit("cannot read " + repr(line))
    if mark != "+":
        hunk["old"].append(text)
    if mark != "-":
        hunk["new"].append(text)

writes, removes = {}, []
for f in files:
    path, to = f["path"], f["to"]
    if f["kind"] == "Add":
        if os.path.exists(path):
            raise SystemExit(path + " exists")
        writes[path] = "".join(text + "\n" for h in f["hunks"] for text in h["new"])
        continue
    with open(path, encoding="utf-8", newline="") as h:
        text = h.read()
    end = "\r\n" if "\r\n" in text else "\n"
    lines, at = text.replace("\r\n", "\n").split("\n"), 0
    for hunk in f["hunks"]:
        if hunk["hint"]:
            at = next((i + 1 for i in range(at, len(lines)) if hunk["hint"] in lines[i]), at)
        if hunk["old"]:
            at = find(lines, hunk["old"], at)
        elif not hunk["hint"]:
            at = len(lines) - (lines[-1] == "")
        lines[at:at + len(hunk["old"])] = hunk["new"]
        at += len(hunk["new"])
    if f["kind"] != "Delete":
        writes[to or path] = end.join(lines) if f["hunks"] else text
    if f["kind"] == "Delete" or to:
        removes.append(path)
for path in removes:
    os.remove(path)
for path, text in writes.items():
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as h:
        h.write(text)
print("patched", ", ".join(sorted(set(writes) | set(removes))))
