"""Makes the pages: the facts that each kind of page tells, and the Markdown that tells them."""

import re
from collections import defaultdict

from model import (ADDRESS, CENSUSES, HERE, MONTHS, Date, between, clock, draw, listing, ordinal, pick, race, slug, words)

ONE = {
    "realms": "realm", "rivers": "river", "lands": "land", "towns": "town", "rulers": "ruler", "people": "person", "wars": "war",
    "battles": "battle", "companies": "company", "ships": "ship", "books": "book", "sources": "source", "plants": "plant",
    "beasts": "beast", "festivals": "festival", "laws": "law", "buildings": "building", "schools": "school", "lines": "line",
    "terms": "term",
}
HEADINGS = {
    "site": "Situation", "market": "Markets", "people": "People and places", "course": "Course", "use": "Use",
    "youth": "Early years", "life": "Later life", "numbers": "Forces and losses", "ground": "Course of the battle",
    "after": "Memory", "hands": "Hands", "log": "A voyage", "editions": "Editions", "history": "History", "winners": "Winners",
    "effect": "Effect", "visit": "Visits", "weather": "Weather and work", "coin": "Coins and seals", "cost": "Costs",
    "table": "Timetable", "nature": "Nature",
}
FIRST = "Ada Bram Cilla Dorn Effie Finn Gerda Holm Inga Jory Karla Lem Moll Nonn Otty Piet Rika Sem Tilda Ulf Vera Wim".split()
LAST = ("Aske Birrel Combe-Lay Drift Ember Fenn Gorse Hask Inch Jute Kell "
        "Loam Marl Nettle Oster Plank Quill Reed Stook Tarn").split()


def load_prose():
    """{kind: {slot: [variants]}}"""
    prose, kind, slot = {}, None, None
    for line in (HERE / "prose.txt").read_text().splitlines():
        if line.startswith("== "):
            kind = prose[line[3:]] = {}
        elif line.startswith("-- "):
            slot = kind[line[3:]] = []
        elif line and not line.startswith("#"):
            slot.append(line)
    return prose


def load_essays():
    essays, lines = {}, None
    for line in (HERE / "essays.txt").read_text().splitlines():
        if line.startswith("= "):
            lines = essays[line[2:]] = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return essays


def table(head, rows):
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines)


def capital(text):
    text = str(text)
    at = 2 if text.startswith("[[") else 0
    return text[:at] + text[at:at + 1].upper() + text[at + 1:]


def number(n):
    return f"{n:,}"


class Pages:
    def __init__(self, facts):
        self.w, self.prose, self.markup = facts, load_prose(), {}
        self.turns = defaultdict(int)
        for kind, one in ONE.items():
            for name in facts.names(kind):
                self.markup[name] = self.tell(one, name, getattr(self, one)(name, facts.row[name]))
        self.months()
        for title, lines in load_essays().items():
            self.markup[title] = "\n\n".join(lines)
        self.results()
        self.lists()
        for d in facts.disputes:
            self.markup[d["page"]] += "\n\n## What the sources say\n\n" + self.disagree(d)
            self.markup[d["where"]] += "\n\n" + self.settle(d)
        self.pointers()
        self.titles = sorted(self.markup)
        assert len({slug(t) for t in self.titles}) == len(self.titles)
        self.linked = defaultdict(list)
        for title in self.titles:
            for target in re.findall(r"\[\[([^]|]*)", self.markup[title]):
                self.linked[target].append(title)
        self.text = {title: self.markdown(title) for title in self.titles}

    # Words.

    def pool(self, name, *key):
        return pick(self.prose["pools"][name], name, *key)

    def link(self, name):
        return f"[[{name}]]" if name in self.w.row else name

    def the(self, name):
        """The name of a place as a link, with the article that it takes."""
        bare = self.w.kind.get(name) == "towns" or name.startswith(("Lake", "Mount", "Cape")) or name not in self.w.row
        return self.link(name) if bare else "the " + self.link(name)

    def at(self, name):
        sort = self.w.row[name].get("sort", "")
        word = {"mountain": "on", "cape": "at", "island": "on", "salt flats": "on"}.get(sort, "in")
        word = {"rivers": "along", "towns": "around"}.get(self.w.kind[name], word)
        return f"{word} {self.the(name)}"

    def links(self, names):
        return listing(map(self.link, names))

    def fill(self, kind, slot, name, facts):
        """A paragraph: the next of the slot's variants whose facts are known."""
        known = [v for v in self.prose[kind][slot] if all(f.lower() in facts for f in re.findall(r"{(\w+)}", v))]
        if not known:
            return ""
        self.turns[kind, slot] += 1
        text = known[(self.turns[kind, slot] + len(slot)) % len(known)]
        text = re.sub(r"<([^<>]*)>", lambda m: pick(m[1].split("|"), name, slot, m[1]), text)

        def value(m):
            fact = facts[m[1].lower()]
            if m[1][0].isupper():
                return capital(words(fact) if isinstance(fact, int) else fact)
            return number(fact) if isinstance(fact, int) else str(fact)

        return re.sub(r"{(\w+)}", value, text)

    def tell(self, kind, name, facts):
        facts = {**self.common(name), "name": re.sub(r" \(.*\)", "", name), "lore": self.w.row[name]["lore"], **facts}
        facts = {key: fact for key, fact in facts.items() if fact not in ("", None)}
        special = [s for s in ("living", "disputed") if s in facts]
        parts = []
        for slot in self.prose[kind]:
            if slot in ("living", "disputed") or slot == "lead" and special:
                slot = special[0] if slot == "lead" else ""
            text = self.fill(kind, slot, name, facts) if slot else ""
            if text and slot.startswith("+"):
                parts[-1] += " " + text
            elif text:
                if slot in HEADINGS:
                    parts.append("## " + HEADINGS[slot])
                parts.append(text)
                if slot in ("hands", "winners", "table"):
                    parts.append(facts["_table"])
        return "\n\n".join(parts)

    def disagree(self, d):
        first, second = self.authority(d["first"]), self.authority(d["second"])
        return (f"On {d['matter']} there are two statements. According to {first} it is {int(d['a']):,}, according to {second} "
                f"{int(d['b']):,}. "
                f"Which of the two is to be followed is discussed under [[{d['where']}]].")

    def settle(self, d):
        other, value = (d["second"], d["b"]) if d["trusted"] == d["first"] else (d["first"], d["a"])
        return (f"As to {d['matter']} in the case of [[{d['page']}]], scholars follow {self.authority(d['trusted'])} today, and "
                f"no longer {self.authority(other)} with its {int(value):,}. {d['why']}")

    def authority(self, name):
        return f"[[{name}]]" if name == "Rivers Measured" else f"the [[{name}]]"

    def common(self, name):
        """What may be told of anything: the words of the pools, two of some, places, and numbers."""
        town = lambda key: self.link(pick([t for t in self.w.names("towns") if t != name], key, name))
        facts = {pool: self.pool(pool, name) for pool in self.prose["pools"] if not pool.startswith("aside")}
        facts |= {pool + "2": self.pool(pool, name, "second") for pool in ("food", "customer", "relic")}
        facts |= {key: town(key) for key in ("far", "port1", "port2", "readat", "otter", "street", "home2", "beside")}
        facts["beside"] = self.link(pick([p for p in self.w.names("plants") if p != name], "beside", name))
        facts |= self.spelt(name, tenth=(4, 20), keepers=(7, 31), verses=(3, 40), debate=(3, 31), pay=(3, 14), built=(3, 12),
                            path=(5, 40), papers=(8, 90))
        facts |= self.drawn(name, letters=(210, 4400), volumes=(3000, 90000), loan=(200, 9000), otteryear=(470, 680),
                            catalogue=(655, 689), law=(561, 680), garden=(560, 680), lost=(655, 689))
        return facts | {"meal": clock(between(5, 9, "meal", name) * 60), "made": pick(MONTHS[:9], "made", name),
                        "high": pick(["higher", "lower"], "high", name)}

    def aside(self, kind, name):
        """A sentence of the kind's pool, dealt out so that it comes once before any comes twice."""
        pool = self.prose["pools"]["aside-" + kind]
        order = sorted(self.w.names(kind), key=lambda n: draw(1 << 30, "aside", n))
        return pool[order.index(name) % len(pool)]

    @staticmethod
    def drawn(name, **ranges):
        return {key: between(*ends, key, name) for key, ends in ranges.items()}

    def spelt(self, name, **ranges):
        return {key: words(n) for key, n in self.drawn(name, **ranges).items()}

    # Kinds of pages: what each one knows.

    def realm(self, name, row):
        towns = self.w.where("towns", "realm", name)
        people = sorted((int(self.w.row[t]["pop"]), t) for t in towns)
        return {**row, "towns": words(len(towns)), "largest": self.link(people[-1][1]), "largestpop": number(people[-1][0]),
                "smallest": self.link(people[0][1]), "smallestpop": number(people[0][0]),
                "total": number(sum(p for p, _ in people))}

    def river(self, name, row):
        towns = sorted(self.w.where("towns", "water", name), key=lambda t: -int(self.w.row[t]["pop"]))
        length = int(row["length"])
        return {**self.spelt(name, mark=(5, 19), fare=(2, 9), mills=(6, 71)),
                **self.drawn(name, fall=(400, 2900), law=(440, 670)), "realm": self.link(row["realm"]),
                "rises_at": self.at(row["rises"]), "mouth": self.the(row["mouth"]), "length": row["length"],
                "upper": str(length * between(15, 38, "upper", name) // 100),
                "floodmonth": pick(MONTHS[:3], "flood", name),
                "flood": str(between(431, 683, "flood year", name)), "towns": self.links(towns),
                "tributaries": self.links(self.w.where("rivers", "mouth", name)),
                "unit": pick(["league", "bend", "season"], "unit", name), "icemonth": pick(MONTHS[7:9], "ice", name)}

    def land(self, name, row):
        shore = self.w.where("towns", "water", name)
        near = pick(shore or self.w.where("towns", "realm", row["realm"]), "near", name)
        first = between(402, 560, "map", name)
        living = self.w.where("plants", "where", name) + self.w.where("beasts", "where", name)
        return {**self.spelt(name, dist=(2, 3) if shore else (4, 29)), "sort": row["sort"], "realm": self.link(row["realm"]),
                "measure": row["measure"], "map": str(first),
                "map2": str(first + between(20, 110, "map2", name)), "near": self.link(near),
                "month": pick(MONTHS[:9], "month", name), "plants": self.links(living)}

    def town(self, name, row):
        w, near = self.w, self.w.near(name)
        born = [n for kind in ("people", "rulers") for n in w.where(kind, "birthplace", name)]
        sights = [f"the {self.link(n)}" for kind in ("buildings", "schools") for n in w.where(kind, "town", name)]
        events = [f"the {self.link(n)}" for kind in ("battles", "laws") for n in w.where(kind, "place", name)]
        charter = int(row["founded"]) + between(20, 90, "charter", name)
        dispute, ruler = w.dispute(name), w.ruler("king", charter) if "Tarvelle" in row["realm"] else None
        quarrel, bridges = self.pool("quarrel", name), words(between(2, 9, "bridges", name)) + " bridges"
        since = between(max(470, int(row["founded"]) + 20), 660, "since", name)
        wall = int(row["founded"]) + between(12, 80, "wall", name)
        return {**self.spelt(name, wards=(3, 17), gates=(2, 9), dist=(4, 31), fee=(2, 9), council=(9, 41), term=(2, 7)),
                "aside": self.aside("towns", name), "old": str(wall + between(30, 90, "old", name)), "founded2": "the foundation",
                "wall": str(wall), "wall2": str(wall + between(9, 99, "wall2", name)),
                "since2": str(since + between(2, 25, "since2", name)),
                "realm": self.link(row["realm"]), "water": self.the(row["water"]), "pop": number(int(row["pop"])),
                "trade": row["trade"],
                "founded": f"{dispute['a']} or in {dispute['b']}" if dispute else row["founded"] if row["founded"] != "0"
                else "the year 0",
                "elev": between(4, 260, "elevation", name) * (9 if "Bredane" in row["realm"] else 1),
                "bank": pick(["left", "right"], "bank", name),
                "bridges": bridges, "bridgecount": bridges[:-8],
                "near": self.link(near), "market": pick(["Netday", "Ploughday", "Kilnday", "Marketday"], "market", name),
                "fairmonth": pick(MONTHS[:9], "fair", name), "charter": str(charter), "fee2": words(between(10, 15, "fee", name)),
                "bywhom": f"from {self.link(ruler)}" if ruler else "from its own council",
                "since": str(since), "quarrel": quarrel, "are": "are" if len(born) > 1 else "is",
                "are2": "are" if len(sights) > 1 else "is", "natives": self.links(born),
                "firms": self.links(w.where("companies", "seat", name)),
                "sights": listing(sights), "events": listing(events), "feasts": self.links(w.where("festivals", "town", name))}

    def ruler(self, name, row):
        w, first, last = self.w, int(row["from"]), int(row["to"])
        falls = [n for kind in ("battles", "laws") for n in w.names(kind)
                 if first <= Date.parse(w.row[n]["date"]).year < (last or 999)]
        falls += [n for n in w.names("buildings") if first <= int(w.row[n]["finished"]) < (last or 999) and not w.dispute(n)]
        same = [r["name"] for r in w.tables["rulers"] if (r["office"] == "First Speaker") == (row["office"] == "First Speaker")]
        at = same.index(name)
        struck = between(first, last or 689, "struck", name)
        return {**self.spelt(name, coin=(31, 90)), **self.drawn(name, price=(110, 890)),
                "lived": f"{w.born(name)} – {w.died(name)}", "born": str(w.born(name)), "office": row["office"],
                "what": "the [[Lethan League]]" if row["office"] == "First Speaker" else "the [[Kingdom of Tarvelle]]",
                "reigned": "led" if row["office"] == "First Speaker" else "ruled", "from": row["from"], "to": row["to"],
                "she": self.she(row["lore"], "she"),
                "birthplace": self.link(row["birthplace"]), "years": last - first if last else None,
                "falls": listing(f"the {self.link(n)}" for n in falls[:5]),
                "before": self.link(same[at - 1]) if at else None,
                "after": self.link(same[at + 1]) if at + 1 < len(same) else None,
                "aside": self.aside("rulers", name), "motif": self.pool("motif", name),
                "struck": str(struck), **({} if w.died(name) else {"living": True})}

    @staticmethod
    def she(lore, word):
        woman = re.search(r"\b(she|hers?|he|his|him)\b", lore, re.I)
        woman = woman is None or woman[1].lower() in ("she", "her", "hers")
        return {"she": "she" if woman else "he", "her": "her" if woman else "his"}[word]

    def person(self, name, row):
        w, born, died = self.w, self.w.born(name), self.w.died(name)
        dispute, until = w.dispute(name), int(row["died"]) or 689
        home = pick([t for t in w.names("towns") if t != row["birthplace"]], "home", name)
        siblings, age = between(3, 9, "siblings", name), (died.number() - born.number()) // 365 if died else None
        year = f"{dispute['a']} or {dispute['b']}" if dispute else str(born)
        ships = [f"[[{s}]]" for s in w.where("ships", "master", name)]
        return {**self.spelt(name, age=(13, 19), hard=(2, 6)), "aside": self.aside("people", name),
                "visit": str(min(until, born.year + between(42, 58, "visit", name))),
                "bust": str(min(689, until + between(5, 60, "bust", name))), "last": name.split(" (")[0].split()[-1],
                "lived": f"{year} – {died}", "born": year, "role": row["role"], "birthplace": self.link(row["birthplace"]),
                "work": row["work"], "her": self.she(row["lore"], "her"), "siblings": words(siblings),
                "nth": ordinal(between(1, siblings, "nth", name)),
                "teacher": self.link(row["teacher"]), "pupils": self.links(w.where("people", "teacher", name)),
                "works": self.links(w.where("books", "author", name)), "ships": listing(ships),
                "built": listing(f"the {self.link(b)}" for b in w.where("buildings", "architect", name)),
                "mid": str(born.year + between(29, 41, "mid", name)), "home": self.link(home),
                "day": pick(["Netday", "Kilnday", "Bellday", "Restday"], "day", name),
                "hon": str(min(until, born.year + between(43, 57, "honoured", name))),
                **({"died": str(died)} if died else {"living": True}), "rest": self.link(home),
                **({} if dispute or not died else {"years": words(age), "nth2": ordinal(age + 1)})}

    def war(self, name, row):
        last = int(row["to"])
        return {**self.spelt(name, pension=(3, 11)), **self.drawn(name, mules=(800, 4000), boots=(5000, 40000)),
                "from": row["from"], "to": row["to"],
                "sides": listing(self.the(s) if s in self.w.row else s for s in row["sides"].split("; ")),
                "battles": listing(f"the [[{b}]]" for b in self.w.where("battles", "war", name)),
                "closed": str(last + between(4, 19, "closed", name)),
                "last": str(last + between(55, 66, "last", name))}

    def battle(self, name, row):
        date, strength, dead = Date.parse(row["date"]), int(row["strength"]), int(row["dead"])
        dispute, deaths = self.w.dispute(name, "year"), self.w.dispute(name, "dead")
        return {**self.spelt(name, mules=(20, 99), weeks=(3, 14), hours=(3, 11)), **self.drawn(name, guns=(2, 40)),
                "date": str(date), "day": date.short(), "place": self.link(row["place"]), "war": row["war"],
                "winner": self.the(row["winner"]),
                "commander": self.link(row["commander"]), "loser": self.link(row["loser"]), "strength": strength,
                "weaker": strength * between(55, 94, "weaker", name) // 100,
                "dead": f"{deaths['a'][0]},{deaths['a'][1:]} or {deaths['b']}" if deaths else "one" if dead == 1 else dead,
                "hurt": dead * between(2, 4, "hurt", name) + draw(9, "hurt", name) + 3,
                "hospital": self.link(self.w.near(row["place"])), "stone": str(date.year + between(20, 59, "stone", name)),
                "month": MONTHS[date.month - 1], **({"disputed": True} if dispute else {})}

    def company(self, name, row):
        hands = [(year, number(self.w.hands(name, year))) for year in range(600, 681, 20) if self.w.hands(name, year)]
        return {**self.spelt(name, pension=(4, 14)), **self.drawn(name, fake=(640, 688),
                strike=(max(612, int(row["founded"]) + 5), 684), days=(3, 71)),
                "seat": self.link(row["seat"]), "trade": row["trade"], "founded": row["founded"],
                "founder": f" by {self.link(row['founder'])}" if row["founder"] else " by several families",
                "founder2": f", when {self.link(row['founder'])} opened it" if row["founder"] else ", the year of its foundation",
                "year1": str(int(row["founded"]) + between(2, 19, "loan", name)),
                "year2": str(min(688, int(row["founded"]) + between(22, 60, "paid", name))),
                "start": clock(between(5, 7, "start", name) * 60 + 15 * draw(4, name)), "_table": table(["year", "hands"], hands),
                "ships": listing(f"the [[{s}]]" for s in self.w.where("ships", "yard", name)),
                "books": self.links(self.w.where("books", "printer", name)),
                "lines": listing(f"[[{line}]]" for line in self.w.where("lines", "company", name))}

    def ship(self, name, row):
        date, length = Date.parse(row["launched"]), int(row["length"])
        end = int((re.search(r"\b\d{3}\b", row["fate"]) or ["689"])[0])
        return {**self.spelt(name, years=(3, max(3, min(11, end - date.year))), speed=(2, 7), days=(11, 60)),
                "sort": row["sort"], "length": row["length"],
                "yard": self.link(row["yard"]), "launched": str(date), "master": self.link(row["master"]),
                "fate": row["fate"], "is": "is" if row["fate"].startswith(("in service", "kept")) else "was",
                "lost": str(min(end, date.year + between(4, 12, "lost", name))),
                "crew": between(9, 20, "crew", name) * length // 20,
                "cost": between(110, 960, "cost", name) * length, "log": str(min(end, date.year + between(3, 8, "log", name))),
                **({"disputed": True} if self.w.dispute(name) else {})}

    def book(self, name, row):
        year, printed = int(row["year"]), row["printer"]
        second = year + between(2, 14, "second", name)
        third = second + between(3, 13, "third", name)
        return {**self.spelt(name, price=(2, 29), left=(3, 88)), **self.drawn(name, pages=(88, 640), copies=(120, 990)),
                "author": self.link(row["author"]), "year": row["year"],
                "what": row["subject"] if row["subject"].startswith("a ") else f"a work on {row['subject']}",
                "subject": {"a novel": "novels", "a book of verse": "verse"}.get(row["subject"], row["subject"]),
                "printed": f"printed by the [[{printed}]]" if printed in self.w.row else printed, "ed2": str(second),
                "ed3": str(min(third, 688)),
                "where": f"the archive of {self.link(pick(self.w.names('towns'), 'where', name))}",
                "found": str(min(third + between(1, 40, "found", name), 689))}

    def source(self, name, row):
        mine = [d["page"] for d in self.w.disputes if name in (d["first"], d["second"])]
        return {**self.spelt(name, volumes=(11, 88), lost=(2, 9)), **self.drawn(name, ed=(601, 680), names=(1200, 9800)),
                "kind": row["kind"], "place": self.link(row["place"]), "from": row["from"], "to": row["to"],
                "are": "are" if re.search("s( of|$)", name) else "is",
                "day": pick(["Netday", "Kilnday"], "day", name),
                "disputes": listing(f"[[{p}]]" for p in dict.fromkeys(mine))}

    def plant(self, name, row):
        year = between(581, 668, "described", name)
        botanist = "Tessan Morrick" if year > 600 else "Hale Ombry"
        height = int(row["height"])
        return {**self.spelt(name, price=(3, 40)), **self.drawn(name, gatherers=(4, 90), licence=(640, 688), number=(11, 4100)),
                "sort": row["sort"], "where_at": self.at(row["where"]), "flowers": MONTHS[int(row["flowers"]) - 1],
                "use": row["use"],
                "height": f"{words(height // 10)} ell{'s' if height >= 20 else ''}" if height >= 10
                          else f"{words(height)} tenth{'s' if height > 1 else ''} of an ell",
                "describer": self.link(botanist), "described": str(min(year, 640)),
                "from": self.link(pick(self.w.names("towns"), "specimen", name))}

    def beast(self, name, row):
        count = between(560, 620, "count", name)
        return {**self.spelt(name, young=(2, 9), age=(4, 33)), **self.drawn(name, number=(900, 40000), number2=(900, 40000)),
                "sort": row["sort"], "where": self.the(row["where"]),
                "weight": f"{words(int(row['weight']))} pound{'s' if int(row['weight']) > 1 else ''}",
                "month": pick(MONTHS[:5], "month", name), "count": str(count),
                "count2": str(count + between(20, 60, "count2", name)),
                "near": self.link(pick(self.w.names("towns"), "near", name))}

    def festival(self, name, row):
        month, day = map(int, row["date"].split("-"))
        since = int(row["since"])
        rows = [(year, *self.winner(name, year)) for year in range(680, 690)]
        off = between(since + 3, 679, "off", name)
        return {**self.spelt(name, price=(12, 60)), "town": self.link(row["town"]),
                "date": f"{day} {MONTHS[month - 1]}" if month < 10 else "the first of the [[Lantern Days]]",
                "since": row["since"], "prize": row["prize"],
                "begin2": pick(["the bakers", "the band", "those who lost last year", "the judges"], name),
                "end": pick(["a supper", "fireworks", "a long silence", "the count of those present", "dancing in boots"], name),
                "off": str(off), "off2": str(min(off + between(2, 60, "off2", name), 679)),
                "_table": table(["year", "winner", "competed"], rows)}

    @staticmethod
    def winner(feast, year):
        return f"{pick(FIRST, feast, year)} {pick(LAST, feast, year, 'last')}", between(9, 140, "competed", feast, year)

    def law(self, name, row):
        date = Date.parse(row["date"])
        first = between(date.year + 4, min(date.year + 60, 683), "amended", name)
        return {**self.spelt(name, hands=(2, 7), times=(12, 90)), **self.drawn(name, lines=(18, 460), glass=(675, 689)),
                "kind": row["kind"], "date": str(date), "place": self.link(row["place"]), "giver": self.link(row["giver"]),
                "where": f"the town hall of {self.link(row['place'])}", "nth": ordinal(between(2, 19, "nth", name)),
                "nth2": ordinal(between(3, 9, "nth2", name)),
                "am1": str(first), "am2": str(min(first + between(3, 70, "again", name), 688))}

    def building(self, name, row):
        cost = between(9, 240, "cost", name) * 1000 + draw(1000, name)
        return {**self.spelt(name, fell=(2, 7), fee=(2, 18)), **self.drawn(name, stones=(900, 40000), masons=(24, 310),
                repair=(655, 689)), "sort": row["sort"], "town": self.link(row["town"]), "begun": row["begun"],
                "finished": row["finished"], "height": row["height"],
                "architect": self.link(row["architect"]), "cost": cost,
                "estimate": cost * between(30, 85, "estimate", name) // 100,
                "day": pick(["Netday", "Loomday", "Marketday"], "day", name),
                "keeper": str(between(int(row["finished"]) + 1, 688, "keeper", name)),
                **({"disputed": True} if self.w.dispute(name) else {})}

    def school(self, name, row):
        return {**self.spelt(name, chairs=(3, 60), rooms=(9, 99), fee=(3, 40)), "sort": row["sort"],
                "town": self.link(row["town"]), "founded": row["founded"], "students": int(row["students"]),
                "members": "students" if int(row["students"]) > 200 else "members",
                "locked": str(between(int(row["founded"]) + 9, 688, "locked", name)),
                "natives": self.links(self.w.where("people", "birthplace", row["town"]))}

    def line(self, name, row):
        stops = row["stops"].split("; ")
        trains = [self.w.stops(name, train) for train in (0, 1)]
        times = [[("–" if i == 0 else clock(arrives), "–" if i == len(stops) - 1 else clock(leaves))
                  for i, (_, arrives, leaves) in enumerate(train)] for train in trains]
        rows = [(self.link(stop), *first, *second) for stop, first, second in zip(stops, *times)]
        return {**self.spelt(name, fare=(3, 25)), **self.drawn(name, passengers=(9000, 60000), passengers2=(70000, 900000)),
                "kind": row["kind"], "company": row["company"], "first": self.link(stops[0]), "last": self.link(stops[-1]),
                "opened": row["opened"],
                "day": pick(["Bellday", "Netday", "Marketday"], "day", name),
                "_table": table(["stop", "arrives", "leaves", "arrives (second)", "leaves (second)"], rows)}

    def term(self, name, row):
        return {**self.spelt(name, years=(2, 9)), **self.drawn(name, first=(420, 600), comm=(604, 680), pages=(110, 900)),
                "sort": row["sort"], "nth": ordinal(between(2, 6, "nth", name))}

    # Pages that are not in a table of their own.

    def months(self):
        w = self.w
        weather = ["meltwater and mud", "showers and the first warm wind", "mild days and cold nights",
                   "long light and dry roads", "heat, with thunder at night", "clear mornings",
                   "gales and falling leaves", "hard frost without snow", "deep snow and short days"]
        work = ["mending dykes", "sowing", "shearing", "cutting hay", "bringing in the corn", "pressing fruit",
                "driving herds home", "felling timber", "sitting by the stove with the accounts"]
        sayings = self.prose["pools"]["saying"]
        for i, short in enumerate(MONTHS[:9]):
            feasts = [f for f in w.names("festivals") if int(w.row[f]["date"].split("-")[0]) == i + 1]
            events = [f"the [[{n}]]" for kind in ("battles", "laws") for n in w.names(kind)
                      if Date.parse(w.row[n]["date"]).month == i + 1]
            flowers = [p for p in w.names("plants") if int(w.row[p]["flowers"]) == i + 1]
            name = f"{short} (month)"
            w.row[name] = {"lore": ""}
            facts = {"short": short, "nth": ordinal(i + 1), "first": 40 * i + 1, "last": 40 * i + 40, "weather": weather[i],
                     "work": work[i], "saying": sayings[i % len(sayings)],
                     "before": "the [[Lantern Days]] of the old year" if i == 0 else f"[[{MONTHS[i - 1]} (month)]]",
                     "after": "the [[Lantern Days]]" if i == 8 else f"[[{MONTHS[i + 1]} (month)]]",
                     "later": words(between(6, 31, "later", short)), "feasts": listing(f"the [[{f}]]" for f in feasts),
                     "plants": self.links(flowers), "events": listing(events[:6])}
            self.markup[name] = self.tell("month", name, facts)

    def results(self):
        w = self.w
        years = range(681, 690)
        for year in years:
            host, matches, order = w.cup(year)
            body = [f"The **Seven Towns Cup of {year}** was the [[Seven Towns Cup]] played at [[{host}]] in Reaping of {year}. "
                    f"{listing(f'[[{row[0]}]]' for row in order)} took part. "
                    f"{matches[draw(15, year)][0]} had asked for another field, and was given another corner of the same one. "
                    f"The judges came from the host, as the rules have it.",
                    "All fifteen matches, with the goals:", table(["home", "away", "goals"],
                    [(a, b, f"{x}:{y}") for a, b, x, y in matches]), "## Final table",
                    table(["side", "won", "drawn", "lost", "goals for", "goals against", "points"], order)]
            self.markup[f"Seven Towns Cup of {year}"] = "\n\n".join(body)
            boats = w.regatta(year)
            crews = [f"{pick(FIRST, 'cox', year, boat[0])} {pick(LAST, 'cox', year, boat[0])}" for boat in boats]
            wind = pick(["a north wind", "no wind at all", "a short sea", "rain from the isles", "glare"], "wind", year)
            body = [f"The **Pellamar Regatta of {year}** was the [[Pellamar Regatta]] of 16 Vintage {year}. Eight boats "
                    f"started, with {wind}, and all of them came in. "
                    f"The boat of [[{boats[0][1]}]] won; at the buoy she had "
                    f"{'led already' if boats[0][2] == min(b[2] for b in boats) else 'not been the first'}. Protests were heard "
                    f"until {between(2, 9, 'protest', year)} in the morning.",
                    table(["place", "boat", "from", "steered by", "at the buoy", "at the finish"],
                          [(i + 1, b[0], f"[[{b[1]}]]", crew, race(b[2]), race(b[3]))
                           for i, (b, crew) in enumerate(zip(boats, crews))])]
            self.markup[f"Pellamar Regatta of {year}"] = "\n\n".join(body)
        for title in ("Seven Towns Cup", "Pellamar Regatta"):
            self.markup[title] += "\n\n" + table(["year", "results"], [(year, f"[[{title} of {year}]]") for year in years])
        self.markup["Duck Count of Ostermere"] += "\n\n" + table(["year", "ducks"],
            [(y, number(w.ducks(y))) for y in range(460, 690)])
        self.markup["Lamp Oil Tally"] += "\n\n" + table(["year", "casks"], [(y, w.oil(y)) for y in range(560, 690)])
        for year in CENSUSES:
            rows = [(f"[[{t}]]", w.row[t]["realm"], number(w.census(t, year))) for t in sorted(w.names("towns"))]
            total = sum(w.census(t, year) for t in w.names("towns"))
            intro = (f"The **Census of {year}** is the {ordinal(CENSUSES.index(year) + 1)} [[Census]] of towns. It was taken on "
                     f"11 Seedling {year} and counted {number(total)} people in {len(rows)} towns. "
                     "Towns stand in alphabetical order.")
            self.markup[f"Census of {year}"] = intro + "\n\n" + table(["town", "realm", "inhabitants"], rows)

    def lists(self):
        w = self.w
        sciences = "astronomer mathematician physicist geologist historian botanist physician chemist".split()
        rulers = [(r["office"] == "First Speaker", f"[[{r['name']}]]", r["from"], r["to"] if r["to"] != "0" else "in office")
                  for r in w.tables["rulers"]]

        def disputed(name, matter, value):
            """What the older source says, which such lists follow."""
            return int((w.dispute(name, matter) or {"a": value})["a"])

        def add(title, head, rows):
            self.markup[title] += "\n\n" + table(head, rows)

        add("List of rulers of Tarvelle", ["ruler", "from", "to"], [rest for speaker, *rest in rulers if not speaker])
        add("List of First Speakers", ["First Speaker", "from", "to"], [rest for speaker, *rest in rulers if speaker])
        add("List of battles", ["battle", "year", "dead"], [
            (f"[[{b['name']}]]", disputed(b["name"], "year", Date.parse(b["date"]).year),
             number(disputed(b["name"], "dead", b["dead"])))
            for b in w.tables["battles"]])
        add("List of ships", ["ship", "sort", "year"], [
            (f"[[{s['name']}]]", s["sort"], disputed(s["name"], "launch", Date.parse(s["launched"]).year))
            for s in w.tables["ships"]])
        wheel = {r["name"]: int(r["length"]) * between(1015, 1058, "wheel", r["name"]) // 1000 for r in w.tables["rivers"]}
        add("List of rivers (survey of 612)", ["river", "leagues"], [
            (f"[[{river}]]", disputed(river, "length", leagues)) for river, leagues in wheel.items()])
        add("List of scholars", ["name", "field"], [
            (f"[[{p['name']}]]", p["role"]) for p in w.tables["people"] if p["role"] in sciences])
        add("List of plants", ["plant", "sort"], [(f"[[{p['name']}]]", p["sort"]) for p in w.tables["plants"]])

    def gloss(self, title):
        row, kind = self.w.row.get(title, {}), self.w.kind.get(title)
        plain = {"towns": f"a town of the {row.get('realm')}", "rivers": "a river", "battles": "a battle", "realms": "a realm",
                 "lines": "a line of steamers", "companies": "a firm", "books": "a book", "festivals": "a festival"}
        what = row.get("role") or row.get("office") or row.get("sort") or plain[kind]
        if kind == "rulers":
            what += " of the Lethan League" if row["office"] == "First Speaker" else " of Tarvelle"
        if kind == "battles":
            what += f" of the {row['war']}"
        return what

    def pointers(self):
        for row in self.w.tables["shared"]:
            name = row["name"].replace(" (disambiguation)", "")
            lines = [f"* [[{page}|{page}]], {self.gloss(page)}" for page in row["pages"].split("; ")]
            intro = f"**{name}** may mean one of several things. This page leads to the articles on them."
            self.markup[row["name"]] = intro + "\n\n" + "\n".join(lines)
        for row in self.w.tables["stubs"]:
            self.markup[row["name"]] = f"**{row['name']}**: see [[{row['page']}]], under which it is treated."
        for row in self.w.tables["old"]:
            text = self.markup[row["page"]]
            changes = [change.split("=>") for change in row["changes"].split("; ")]
            if self.w.kind[row["page"]] == "towns":
                changes.insert(0, [number(int(self.w.row[row["page"]]["pop"])), number(self.w.census(row["page"], 640))])
            for old, new in changes:
                assert old in text, (row["page"], old)
                text = text.replace(old, new)
            note = (f"*This is the article [[{row['page']}]] as it stood in the edition of 655. It is kept as it was and is no "
                    f"longer corrected; what it says has been overtaken in places, and figures in it should not be used where "
                    f"the current article has others.*")
            self.markup[f"{row['page']} (edition of 655)"] = note + "\n\n" + text

    # From our markup to Markdown.

    def markdown(self, title):
        text = self.markup[title]
        kin = [t for t in dict.fromkeys(self.linked[title]) if f"[[{t}" not in text and t not in self.short()
               and not re.search(r"\(edition|^List of|^Census of", t)]
        if kin and title not in self.short() and "(edition" not in title:
            chosen = sorted(kin, key=lambda t: draw(1 << 20, title, t))[:4]
            text += "\n\n## See also\n\n" + "\n".join(f"* [[{t}|{t}]]" for t in sorted(chosen))
        text = re.sub(r"\b([Aa]) (?=(\[\[)?([aeioAEIO]|u(?!ni|s)|11\b|8))", r"\1n ", text)
        seen = set()

        def link(m):
            target, _, shown = m[1].partition("|")
            assert target in self.markup, f"{title} links to {target}, which is not a page"
            shown = shown or re.sub(r" \((month|coin|unit|astronomer|captain|elder|younger|Tarvelle|Skarrow|\d+)\)", "", target)
            if target in seen or target == title:
                return shown
            seen.add(target)
            return f"[{shown}]({ADDRESS}{slug(target)})"

        text = re.sub(r"\[\[([^]]*)]]", link, text)
        assert not re.search(r"[{}<>]|\[\[", text), (title, re.search(r".{40}([{}<>]|\[\[).{40}", text))
        lines = []
        for line in text.split("\n"):  # a sentence a line, so that what find shows is a whole sentence
            lines += [line] if line.startswith(("|", "#", "* ")) else re.split(r"(?<=[.?!]) (?=[A-Z\[])", line)
        return "\n".join(lines) + "\n"

    def short(self):
        return {row["name"] for kind in ("shared", "stubs") for row in self.w.tables[kind]}
