"""What the facts of the world are: tables, dates, and draws that are the same on every machine."""

import hashlib
import pathlib
import re

HERE = pathlib.Path(__file__).parent
ADDRESS = "https://world.example/wiki/"
MONTHS = ["Thaw", "Seedling", "Bloom", "Highsun", "Reaping", "Vintage", "Leaf-fall", "Frost", "Deepnight", "Lantern"]
WEEK = ["Millday", "Netday", "Ploughday", "Kilnday", "Loomday", "Bellday", "Marketday", "Restday"]
CENSUSES = [580, 600, 620, 640, 660]


def draw(n, *key):
    """A number below n that depends on the key alone."""
    digest = hashlib.sha256("\0".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:6], "big") % n


def between(low, high, *key):
    return low + draw(high - low + 1, *key)


def pick(items, *key):
    return items[draw(len(items), *key)]


def tables(name):
    """The tables of a file: {table: [row]}, where a row maps columns to text."""
    found, columns, rows = {}, [], []
    for line in (HERE / name).read_text().splitlines():
        if line.startswith("== "):
            table, _, heading = line[3:].partition(": ")
            columns, rows = heading.split(" | "), found.setdefault(table, [])
        elif line and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split(" |")]
            assert len(cells) == len(columns), line
            rows.append(dict(zip(columns, cells)))
    return found


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "")).strip("-")


class Date:
    """A day of the Compact Calendar. Month 10 are the Lantern Days."""

    def __init__(self, year, month, day):
        self.year, self.month, self.day = year, month, day

    @staticmethod
    def parse(text):
        return Date(*map(int, text.split("-")))

    def __str__(self):
        return f"{self.short()} {self.year}"

    def short(self):
        return f"{self.day} {MONTHS[self.month - 1]}"

    def weekday(self):
        return WEEK[(self.day - 1) % 8]

    def number(self):
        """Days since the first day of year 0, a year with five Lantern Days."""
        leaps = (self.year + 4) // 5
        return self.year * 364 + leaps + (self.month - 1) * 40 + self.day - 1

    def old_tally(self):
        return self.year + (212 if self.month >= 4 else 211)


def words(n):
    """A number in words, if it is below a hundred."""
    small = ("no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
             "eighteen nineteen").split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    if n >= 100:
        return f"{n:,}"
    if n < 20:
        return small[n]
    return tens[n // 10 - 2] + ("-" + small[n % 10] if n % 10 else "")


def ordinal(n):
    irregular = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth"}
    if n in irregular:
        return irregular[n]
    if n < 20:
        return words(n) + "th"
    if n % 10 == 0:
        return words(n)[:-1] + "ieth"
    return words(n - n % 10) + "-" + ordinal(n % 10)


def listing(items):
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


class Facts:
    """All tables, and what follows from them."""

    def __init__(self):
        self.tables = tables("facts.txt") | tables("more.txt")
        self.row, self.kind = {}, {}
        for kind, rows in self.tables.items():
            if kind in ("disputes", "shared", "stubs", "old"):
                continue
            for row in rows:
                assert row["name"] not in self.row, row["name"]
                self.row[row["name"]], self.kind[row["name"]] = row, kind
        self.disputes = self.tables["disputes"]

    def names(self, kind):
        return [row["name"] for row in self.tables[kind]]

    def where(self, kind, column, value):
        return [row["name"] for row in self.tables[kind] if row[column] == value]

    def dispute(self, page, matter=""):
        return next((d for d in self.disputes if d["page"] == page and matter in d["matter"]), None)

    def census(self, town, year):
        """The inhabitants of a town: the table has 660, and earlier figures are smaller by what the town grew."""
        people = int(self.row[town]["pop"])
        for step in range((660 - year) // 20):
            people = people * 1000 // between(960, 1190, "growth", town, step) + draw(37, "rest", town, step)
        return people

    def born(self, name):
        row = self.row[name]
        return Date(int(row["born"]), between(1, 9, "month of birth", name), between(1, 40, "day of birth", name))

    def died(self, name):
        row = self.row[name]
        if "died" in row:
            year = int(row["died"])
        elif row["office"] == "First Speaker" and row["to"] != "0":
            year = min(int(row["to"]) + between(1, 19, "after office", name), 688)
        else:
            year = int(row["to"]) + (19 if name == "Ismar the Short" else 0)
            year = 0 if row["to"] == "0" else year
        return Date(year, between(1, 9, "month of death", name), between(1, 40, "day of death", name)) if year else None

    def hands(self, company, year):
        """The people that a company employed: those of 660 stand in the table."""
        row, people = self.row[company], int(self.row[company]["hands"])
        if year < int(row["founded"]):
            return None
        step = (year - 660) // 20
        return max(12, people * (100 + step * between(7, 17, "hands", company)) // 100 + draw(23, company,
            year) - 11) if step else people

    def ducks(self, year):
        return 2400 + draw(2300, "ducks", year) + draw(900, "late ice", year // 3)

    def oil(self, year):
        war = any(int(w["from"]) <= year <= int(w["to"]) for w in self.tables["wars"] if "Lethan League" in w["sides"])
        return draw(14, "oil", year) if war else between(3, 25, "oil", year) if year > 674 else between(60, 340, "oil", year)

    def cup(self, year):
        """The matches of the Seven Towns Cup of a year, and the table that follows from them."""
        towns = ["Corvash", "Tillenham", "Uldren", "Lethanport", "Kellisport", "Skarrowhead", "Brasselton"]
        host = towns[year % 7]
        sides = [town for town in towns if town != host]
        matches, table = [], {side: [0, 0, 0, 0, 0] for side in sides}  # won, drawn, lost, for, against
        for i, home in enumerate(sides):
            for away in sides[i + 1:]:
                goals = draw(7, "cup", year, home, away), draw(7, "cup", year, away, home)
                matches.append((home, away, *goals))
                for side, ours, theirs in ((home, *goals), (away, *goals[::-1])):
                    row = table[side]
                    row[0 if ours > theirs else 1 if ours == theirs else 2] += 1
                    row[3] += ours
                    row[4] += theirs
        order = sorted(sides, key=lambda s: (-3 * table[s][0] - table[s][1], table[s][4] - table[s][3], -table[s][3], s))
        return host, matches, [(side, *table[side], 3 * table[side][0] + table[side][1]) for side in order]

    def regatta(self, year):
        """The boats of a regatta in the order of the finish: name, town, seconds to the buoy and to the finish."""
        boats = ["Owl", "Second Noon", "Patience", "Cork", "Old Debt", "Heron's Leg", "Wet Clerk", "Marketday", "Thistle",
            "Brother Vey"]
        towns = ["Pellamar", "Lethanport", "Tarrenhaven", "Ashlemouth", "Vennor", "Marrendy", "Vorrinmouth", "Fallowstrand",
            "Sundrey", "Dovrane"]
        start = [i for i in range(10) if i not in (year % 10, (year * 3 + 1) % 10)][:8]
        result = []
        for i in start:
            out = 2300 + draw(330, "buoy", year, i)
            result.append((boats[i], towns[i], out, out * 2 + draw(300, "finish", year, i) - 60))
        return sorted(result, key=lambda boat: boat[3])

    def stops(self, line, train):
        """The timetable of a line: stop, arrival and departure in minutes of the day."""
        row = self.row[line]
        hour, minute = map(int, row["start"].split(":"))
        now, found = hour * 60 + minute + train * between(270, 400, "second", line), []
        minutes = [0] + [int(m) for m in row["minutes"].split()]
        for stop, ride in zip(row["stops"].split("; "), minutes):
            arrives = now + ride
            now = arrives + between(3, 9, "halt", line, stop)
            found.append((stop, arrives, now))
        return found

    def near(self, town):
        towns = self.where("towns", "realm", self.row[town]["realm"])
        return towns[(towns.index(town) + 1) % len(towns)]

    def ruler(self, office, year):
        return next((r["name"] for r in self.tables["rulers"] if (r["office"] == "First Speaker") == (office == "First Speaker")
                     and int(r["from"]) <= year < (int(r["to"]) or 999)), None)


def clock(minutes):
    return f"{minutes // 60 % 24}:{minutes % 60:02d}"


def race(seconds):
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else f"{minutes}:{seconds % 60:02d}"
