"""Computes the numbers of report --json and diff --json anew from rows, with Python alone:

recompute.py report REPORT.json ROWS.jsonl
recompute.py diff DIFF.json FROM.jsonl TO.jsonl

The rows are those of export --to jsonl. A number that differs, or that has no counterpart here, is named, and the exit code is 1.
"""
import collections
import json
import math
import statistics
import sys

AGENTS = ("success", "failure", "limit")
OUTCOMES = AGENTS + ("model_error", "tool_error", "sandbox_error", "verifier_error", "cancelled")
Z = statistics.NormalDist().inv_cdf(0.975)


def beta_cdf(x, a, b):
    """The regularised incomplete beta function, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    f = d
    for m in range(1, 1000):
        for top in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                    -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d, c = 1 / (1 + top * d), 1 + top / c
            f *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * f


def solve(function, goal, low, high):
    """Where a function that grows reaches a goal."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < goal else (low, middle)
    return (low + high) / 2


def t_tails(t, df):
    return beta_cdf(df / (df + t * t), df / 2, 0.5)


def t_above(tail, df):
    return solve(lambda t: -t_tails(t, df), -2 * tail, 0, 1000)


def clopper_pearson(x, n):
    return (solve(lambda p: beta_cdf(p, x, n - x + 1), 0.025, 0, 1) if x > 0 else 0,
            solve(lambda p: beta_cdf(p, x + 1, n - x), 0.975, 0, 1) if x < n else 1)


def error(values):
    return statistics.stdev(values) / math.sqrt(len(values))


def korn_graubard(means):
    m, n = statistics.fmean(means), len(means)
    e = error(means)
    worth = max(n - 1, m * (1 - m) / e ** 2) if e > 1e-10 else n
    worth *= (Z / t_above(0.025, n - 1)) ** 2
    return clopper_pearson(min(1, m) * worth, worth)


def suite_variance(tasks):
    k = statistics.fmean(map(len, tasks))
    own = sum(statistics.variance(t) / len(t) if len(t) > 1 else 0.25 for t in tasks)
    return (own + 0.25 / k) / len(tasks) ** 2 if len(tasks) > 1 and k >= 2 else None


def ends(low, high):
    return {"low": low, "high": high}


def note(n, interval, wide):
    return {"note": f"{n} tasks: the interval spans most of the range"} if interval[1] - interval[0] > wide else {}


def estimate(samples, unresolved={}):
    """The mean of values between 0 and 1 by task."""
    tasks = [v for v in samples.values() if v]
    if not tasks:
        return {"n": 0, "tasks": 0, "mean": None}
    means = [statistics.fmean(t) for t in tasks]
    m, count = statistics.fmean(means), sum(map(len, tasks))
    e = {"n": count, "tasks": len(tasks), "mean": m}
    if len(tasks) > 1:
        interval = korn_graubard(means)
        e.update(ends(*interval), method="clopper-pearson", **note(len(tasks), interval, 0.5))
    else:
        e.update(low=None, high=None, note="one task: no interval")
    v = suite_variance(tasks)
    if v:
        n = max(count, m * (1 - m) / v)
        middle, half = m + Z * Z / 2 / n, Z * math.sqrt(max(0, m * (1 - m)) / n + Z * Z / 4 / n / n)
        e["fixed_suite"] = ends(max(0, (middle - half) / (1 + Z * Z / n)), min(1, (middle + half) / (1 + Z * Z / n)))
    if sum(unresolved.values()):
        e["unresolved"] = sum(unresolved.values())
        both = [bounds(samples.get(t, []), unresolved.get(t, 0)) for t in {*samples, *unresolved}]
        e["bounds"] = ends(*(statistics.fmean(side) for side in zip(*both)))
    return e


def bounds(values, lost):
    return sum(values) / (len(values) + lost), (sum(values) + lost) / (len(values) + lost)


def pass_rates(samples, rate):
    rates, k = [], 1
    while values := [rate(len(v), int(sum(v)), k) for v in samples.values() if len(v) >= k]:
        e = ends(*korn_graubard(values)) if len(values) > 1 else ends(None, None)
        rates.append({"k": k, "value": statistics.fmean(values), **e, "tasks": len(values), "of": len(samples)})
        k *= 2
    return rates


def judged(row):
    return row.get("reward") is not None and row["outcome"] in AGENTS


def lost(row):
    return not judged(row) and bool(row["task"].get("verify"))


def by_task(rows, value, chosen=judged):
    samples = collections.defaultdict(list)
    for row in rows:
        if chosen(row):
            samples[row["key"]["task"]].append(value(row))
    return samples


def succeeded(row):
    return float(row["outcome"] == "success")


def reward(row):
    return row["reward"]


def tally(names):
    return [{"name": n, "count": c} for n, c in sorted(collections.Counter(names).items(), key=lambda p: (-p[1], p[0]))]


def kind(values):
    low, high = clopper_pearson(sum(values), len(values))
    return "stable_pass" if low > 0.9 else "stable_fail" if high < 0.1 else "flaky" if low > 0.05 and high < 0.95 else "unknown"


def groups(rows, names):
    found = collections.defaultdict(list)
    for row in rows:
        for name in {*names(row)}:
            found[name].append(row)
    return [{"name": n, "episodes": len(found[n]), "reward": estimate(by_task(found[n], reward))} for n in sorted(found)]


def rank(values, q):
    return sorted(values)[max(1, math.ceil(q * len(values) - 1e-9)) - 1]


def times(values):
    return {"p50_us": rank(values, 0.5) // 1000, "p95_us": rank(values, 0.95) // 1000}


def usage(turns):
    known = [t["usage"] for t in turns if t.get("usage", {}).get("reported")]
    return {**{k: sum(u.get(k, 0) for u in known) for k in ("prompt", "completion", "reasoning", "cached")},
            "turns": len(turns), "unreported_turns": len(turns) - len(known)}


def tool(name, calls):
    statuses = collections.Counter(c["status"] for c in calls)
    return {
        "tool": name, "calls": len(calls),
        "statuses": [{"name": s, "count": statuses[s]} for s in
                     ("ok", "error", "timeout", "denied", "invalid_arguments", "unknown_tool", "unavailable") if statuses[s]],
        "error_classes": tally(c["error_class"] for c in calls if c.get("error_class")),
        "repaired": sum(bool(c.get("repaired")) for c in calls), "coerced": sum(bool(c.get("coerced")) for c in calls),
        "stored": sum(bool(c.get("stored")) for c in calls), "masked": sum(bool(c.get("masked")) for c in calls),
        "shared": sum(bool(c.get("same_as")) for c in calls), "nonzero_exits": sum(bool(c.get("exit_code")) for c in calls),
        "refused": said(calls, "refused", "denied"), "approved": said(calls, "approved"),
        "elapsed": times([c.get("elapsed", 0) for c in calls]), "sandbox": times([c.get("sandbox_time", 0) for c in calls]),
    }


def faults(rows):
    """What episodes ended in; the first in the order of the dataset is the example."""
    found = collections.defaultdict(list)
    for r in sorted(rows, key=lambda r: (r["row"], r["key"]["sample"])):
        if r.get("fault"):
            found[r["outcome"], r["fault"]["class"]].append(r)
    return [{"outcome": o, "class": c, "count": len(v), "id": v[0]["id"], "example": v[0]["fault"]["message"][:500]}
            for (o, c), v in sorted(found.items(), key=lambda f: (-len(f[1]), f[0]))]


def said(calls, *words):
    return sum((c.get("verdict") or {}).get("decision", "").startswith(words) for c in calls if not c.get("same_as"))


def report(rows):
    rewards, successes = by_task(rows, reward), by_task(rows, succeeded)
    open_plays = {t: len(v) for t, v in by_task(rows, bool, lost).items()}
    errors = collections.Counter(r["key"]["task"] for r in rows if r["outcome"] not in AGENTS)
    first = {}
    for r in rows:
        first[r["key"]["task"]] = min(first.get(r["key"]["task"], r["row"]), r["row"])
    table = []
    for t in first:
        v = successes.get(t, [])
        if v or open_plays.get(t):
            table.append({"task": t, "row": first[t], "samples": len(v), "successes": int(sum(v)), "errors": errors[t],
                          "reward": statistics.fmean(rewards[t]) if v else None, "kind": kind(v) if v else "unknown"})
    table.sort(key=lambda r: (r["successes"] / r["samples"] if r["samples"] else -1, r["reward"] or 0, -r["errors"],
                              -r["samples"], r["row"], r["task"]))
    kinds = collections.Counter(kind(v) for v in successes.values())
    shares = [statistics.fmean(v) for v in successes.values()]
    calls = collections.defaultdict(list)
    for call in (c for r in rows for c in r.get("calls") or [] if not c.get("planted")):
        calls["(unknown)" if call["status"] == "unknown_tool" else call["name"]].append(call)
    outcomes = collections.Counter(r["outcome"] for r in rows)
    lengths = [len(r.get("turns") or []) for r in rows]
    turns = [t for r in rows for t in r.get("turns") or []]
    elapsed = sum(r["elapsed"] for r in rows)
    return {
        "episodes": {"present": len(rows), "tasks": len(first), "judged": sum(map(judged, rows)), "errors": sum(errors.values()),
                     "unjudged": sum(r["outcome"] in AGENTS and r.get("reward") is None for r in rows)},
        "outcomes": [{"outcome": o, "count": outcomes[o]} for o in OUTCOMES],
        "reward": estimate(rewards, open_plays), "success_rate": estimate(successes, open_plays),
        "pass_at_k": pass_rates(successes, lambda n, c, k: 1 - math.comb(n - c, k) / math.comb(n, k)),
        "pass_hat_k": pass_rates(successes, lambda n, c, k: math.comb(c, k) / math.comb(n, k)),
        "tasks": {"judged": len(shares), "always": shares.count(1), "never": shares.count(0),
                  "sometimes": sum(0 < s < 1 for s in shares), "table": table[:100], "left_out": max(0, len(table) - 100),
                  "kinds": [{"name": k, "count": kinds[k]} for k in ("stable_pass", "flaky", "stable_fail", "unknown")]},
        "toolset_combinations": groups(rows, lambda r: ["+".join(r.get("toolsets") or []) or "(none)"]),
        "toolsets": groups(rows, lambda r: r.get("toolsets") or []), "tags": groups(rows, lambda r: r["task"].get("tags") or []),
        "difficulties": groups(rows, lambda r: [r["task"]["difficulty"]] if r["task"].get("difficulty") else []),
        "tools": [tool(n, calls[n]) for n in sorted(calls)], "unknown_tools": tally(c["name"] for c in calls["(unknown)"]),
        "turns": {"mean": statistics.fmean(lengths), "p50": rank(lengths, 0.5), "p95": rank(lengths, 0.95), "max": max(lengths)},
        "stops": tally(r["stop"] for r in rows), "faults": faults(rows), "tokens": usage(turns),
        "time": {"episode": times([r["elapsed"] for r in rows]),
                 "model_share": sum(r["phases"].get("model", 0) for r in rows) / elapsed,
                 "tool_share": sum(r["phases"].get("tools", 0) for r in rows) / elapsed},
    }


def change(sides, unresolved, unit):
    """The change of a measure: unit, between 0 and 1, has pseudo tasks, bounds and a fixed suite."""
    shared = sorted(t for t in sides[0] if sides[0][t] and sides[1].get(t))
    means = [[statistics.fmean(s[t]) for t in shared] for s in sides]
    d, n = [b - a for a, b in zip(*means)], len(shared)
    if not d:
        return {"from": None, "to": None, "proves": 0, "p": None}, None
    c, out = {"n": n, "tasks": n, "mean": statistics.fmean(d)}, {}
    sign = 0
    if n > 1:
        low, high, sign, shift, se = paired(d, unit)
        c.update(ends(low, high), method="t-pseudo-tasks" if unit else "t", **note(n, (low, high), 1 if unit else math.inf))
        out["p"] = t_tails(shift / se, n - 1) if se > 1e-10 else None
        out["detectable"] = {"tasks": (t_above(0.05, n - 1) + t_above(0.2, n - 1)) * se, "fixed_suite": None}
    if unit:
        v = [suite_variance([s[t] for t in shared]) for s in sides]
        if all(v):
            half = Z * math.sqrt(sum(v))
            c["fixed_suite"] = ends(max(-1, c["mean"] - half), min(1, c["mean"] + half))
            q = statistics.NormalDist().inv_cdf
            out["detectable"]["fixed_suite"] = (q(0.95) + q(0.8)) * math.sqrt(sum(v))
        both = [t for t in {*sides[0], *unresolved[0]} if all(s.get(t) or u.get(t) for s, u in zip(sides, unresolved))]
        if count := sum(u.get(t, 0) for u in unresolved for t in both):
            a, b = ([bounds(s.get(t, []), u.get(t, 0)) for t in both] for s, u in zip(sides, unresolved))
            ways = [[y[0] - x[1] for x, y in zip(a, b)], [y[1] - x[0] for x, y in zip(a, b)]]
            c["unresolved"], c["bounds"] = count, ends(*map(statistics.fmean, ways))
            if any((paired(w, True)[2] if len(w) > 1 else 0) != sign for w in ways):
                sign = 0
    return {"from": statistics.fmean(means[0]), "to": statistics.fmean(means[1]), "change": c, "proves": sign, **out}, out.get("p")


def paired(d, unit):
    values = d + [0.5, -0.5] if unit else d
    m, se, mean = statistics.fmean(values), error(values), statistics.fmean(d)
    half = t_above(0.025, len(d) - 1) * se
    low, high = (max(-1, m - half), min(1, m + half)) if unit else (m - half, m + half)
    low, high = min(low, mean), max(high, mean)
    return low, high, (low > 0) - (high < 0), m, se


def diff(old, new):
    both = (old, new)
    measures = {
        "success_rate": (succeeded, judged, lost), "reward": (reward, judged, lost),
        "turns": (lambda r: len(r.get("turns") or []), None, None),
        "tokens": (lambda r: r["usage"]["prompt"] + r["usage"]["completion"], lambda r: r["usage"].get("reported"), None),
        "cost_usd": (lambda r: r["cost_usd"], lambda r: r.get("cost_usd") is not None, None),
        "elapsed_s": (lambda r: r["elapsed"] / 1e9, None, None),
    }
    found, p = {}, {}
    for name, (value, known, unresolved) in measures.items():
        ours = [[r for r in rows if r["outcome"] in AGENTS] for rows in both]
        sides = [by_task(rows, value, known or bool) for rows in ours]
        open_plays = [{t: len(v) for t, v in by_task(rows, bool, unresolved).items()} for rows in both] if unresolved else [{}, {}]
        if known and not unresolved:  # a task of which not all is known is left out
            gaps = {r["key"]["task"] for rows in ours for r in rows if not known(r)}
            sides = [{t: v for t, v in s.items() if t not in gaps} for s in sides]
        found[name], p[name] = change(sides, open_plays, bool(unresolved))
    order, most = sorted((n for n in p if p[n] is not None), key=p.get), 0
    for i, name in enumerate(order):
        most = found[name]["p_holm"] = max(most, min(1, p[name] * (len(order) - i)))
    was, now = (by_task(rows, succeeded) for rows in both)
    scores, all_tasks = [by_task(rows, reward) for rows in both], [{r["key"]["task"] for r in rows} for rows in both]
    compared = sorted(t for t in was if t in now)
    shares = [(statistics.fmean(now[t]), statistics.fmean(was[t])) for t in compared]
    better, worse = sum(a > b for a, b in shares), sum(a < b for a, b in shares)
    split = better + worse
    tails = [{(r["key"]["task"], r["key"]["sample"]): r["outcome"] for r in rows} for rows in both]
    moves = collections.Counter((o, tails[1][s]) for s, o in tails[0].items() if s in tails[1] and tails[1][s] != o)

    def score(t, side):
        rows = [r for r in both[side] if r["key"]["task"] == t]
        v = (was, now)[side][t]
        return {"samples": len(v), "successes": int(sum(v)), "errors": sum(r["outcome"] not in AGENTS for r in rows),
                "reward": statistics.fmean(scores[side][t])}

    changed = [{"task": t, "row": next(r["row"] for r in old if r["key"]["task"] == t), "from": score(t, 0), "to": score(t, 1)}
               for t, (a, b) in zip(compared, shares)
               if a != b or abs(statistics.fmean(scores[0][t]) - statistics.fmean(scores[1][t])) > 1e-12]
    return {
        **found, "better": better, "worse": worse, "same": len(compared) - split,
        "sign_p": min(1, 2 * sum(math.comb(split, i) for i in range(min(better, worse) + 1)) / 2 ** split) if split else None,
        "tasks": {"compared": len(compared), "uncompared": len(all_tasks[0] & all_tasks[1]) - len(compared),
                  "only_from": len(all_tasks[0] - all_tasks[1]), "only_to": len(all_tasks[1] - all_tasks[0])},
        "moves": [{"from": a, "to": b, "count": n} for (a, b), n in sorted(moves.items(), key=lambda m: (-m[1], m[0]))],
        "changed": changed,
    }


def against(want, got, path, wrong):
    """Names where two documents differ, and numbers of the second that the first lacks. It returns how many were compared."""
    if isinstance(want, dict) and isinstance(got, dict):
        return sum(against(want.get(k), got.get(k), f"{path}.{k}", wrong) for k in {*want, *got})
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        if path == ".changed":  # by size; those of one size by row
            want, got = (sorted(x, key=lambda c: c["task"]) for x in (want, got))
        return sum(against(w, g, f"{path}[{i}]", wrong) for i, (w, g) in enumerate(zip(want, got)))
    if want is None:
        if numbers(got):
            wrong.append(f"{path} = {got} is not computed here")
        return 0
    same = math.isclose(want, got, rel_tol=1e-7, abs_tol=1e-9) if all(type(x) in (int, float) for x in (want, got)) else want == got
    if not same:
        wrong.append(f"{path} = {got}, from the rows {want}")
    return 1


def numbers(value):
    """Whether a document has a number that says something."""
    if isinstance(value, (dict, list)):
        return any(map(numbers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (int, float)) and value != 0


# What rows do not say: prices, how long the run took, how many episodes it called for.
OUTSIDE = {"report": ("schema", "cost", "budget"), "diff": ()}


def main(what, document, *files):
    rows = [[r for r in map(json.loads, open(f, encoding="utf-8")) if not r.get("twin")] for f in files]
    got = {k: v for k, v in json.load(open(document, encoding="utf-8")).items() if k not in OUTSIDE[what]}
    for name, keys in (("episodes", ("planned", "missing", "twins")), ("time", ("wall_us", "episodes_per_second"))):
        for key in keys if what == "report" else ():
            got[name].pop(key, None)
    if any(not 0 <= r["reward"] <= 1 for each in rows for r in each if judged(r)):
        sys.exit("recompute.py: some rewards are not between 0 and 1; their intervals are not computed here")
    wrong = []
    compared = against({"report": report, "diff": diff}[what](*rows), got, "", wrong)
    print("\n".join(wrong) or f"{what}: {compared} values are as the rows say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
