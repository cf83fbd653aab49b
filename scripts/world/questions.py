"""The questions: each with the pages that answer it, in the order in which they are read, and an answer that the facts give."""

import json
import re

from model import Date, clock, race, slug


class Question:
    """A question about pages. reads are (page, query, evidence): what to search for, or "" to follow a link of an earlier page,
    and texts that have to stand in what is opened. A page that is longer than one opening is looked through with find."""

    def __init__(self, kind, prompt, answer, *reads):
        self.kind, self.prompt = kind, prompt
        self.answers = answer if isinstance(answer, tuple) else (answer,)  # the first is the solution's
        self.answer = self.answers[0]
        self.reads = [(page, query, [str(e) for e in evidence]) for page, query, *evidence in reads]
        self.steps = len(reads)
        assert len({page for page, *_ in reads}) == self.steps, prompt

    def verify(self):
        if isinstance(self.answer, int):
            return {"number": self.answer}
        if isinstance(self.answer, Date):
            d = self.answer
            month = str(d).split()[1]
            return {"regex": rf"(?i)^\W*{d.day}(st|nd|rd|th)?( of)? {month},? {d.year}\W*$"}
        names = "|".join(re.escape(name).replace(r"\ ", " ").replace(r"\-", "-") for name in self.answers)
        return {"regex": rf"(?i)^\W*(the )?({names})\W*$"}

    def gold(self, pages):
        turns = []
        for page, query, evidence in self.reads:
            if query:
                turns.append(("search", {"query": query}))
            turns.append(("open", {"id": slug(page)}))
            if far(pages.text[page], evidence):
                turns.append(("find", {"id": slug(page), "pattern": finds(evidence)}))
        return turns

    def yaml(self, n, pages):
        level = "easy" if self.steps < 3 else "medium" if self.steps == 3 else "hard"
        lines = [f"- id: research-{self.steps}-{n:02d}-{slug(self.kind)}", f"  difficulty: {level}",
                 f"  tags: [research, steps-{self.steps}, {slug(self.kind)}]", "  toolsets: [corpus]",
                 f"  prompt: {quote(self.prompt)}",
                 f"  verify: {json.dumps(self.verify())}", "  gold:"]
        for name, arguments in self.gold(pages):
            flow = ", ".join(f"{key}: {quote(value)}" for key, value in arguments.items())
            lines.append(f"    - tool_calls: [{{name: {name}, arguments: {{{flow}}}}}]")
        lines.append(f"    - content: {quote(str(self.answer))}")
        return "\n".join(lines) + "\n"


def quote(text):
    return json.dumps(text, ensure_ascii=False)


def plain(text):
    """Markdown without the addresses of its links."""
    return re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", text)


def far(text, evidence):
    """Whether some of the evidence is below the hundred lines that one opening shows."""
    first = plain("\n".join(text.split("\n")[:100]))
    return any(e not in first for e in evidence)


def finds(evidence):
    """A pattern for rows of a table, by their first cell: all that one knows who looks for them."""
    return "|".join(rf"\| {re.match(r'[|] ([^|]+) [|]', row)[1]} \|" for row in evidence)


def questions(w, pages):
    row, text = w.row, pages.text
    num = lambda n: f"{n:,}"
    pop = lambda town, year: num(w.census(town, year))
    date = lambda name, column="date": Date.parse(row[name][column])
    days = lambda a, b: b.number() - a.number()
    name = "Answer with the name only."
    figure = "Answer with the number only."
    day = "Answer with the date only, as in 5 Thaw 300."

    def stated(page, pattern):
        """A number that a page states in prose."""
        found = re.search(pattern, text[page])
        assert found, (page, pattern)
        return int(next(n for n in found.groups() if n).replace(",", "")), found[0]

    cost = lambda page: stated(page, r"(?:cost|bill of|price was) ([\d,]+)")
    strike = lambda company: stated(company, r"strike of (\d+) days|lasted (\d+) days")
    flood = lambda river: stated(river, r"mark, of (\d+)|flood was in (\d+)|flood of (\d+)")
    height = lambda town: stated(town, r"([\d,]+) ells above the sea|above the sea is ([\d,]+)")
    calendar = ("Compact Calendar", "compact calendar months days in a year", "forty days each", "364 days")
    week = ("Week", "week weekdays of a month", "first of every month is a Millday", "Kilnday")
    out = []

    def ask(*parts):
        out.append(Question(*parts))

    # One page.
    ask("lookup", "How many stumps were counted in the Wendrow Forest by order of Wenna III? " + figure, 411206,
        ("Wendrow Forest", "Wendrow Forest stumps counted", "411,206"))
    ask("lookup", "How many mixtures did the chemist Dove Kerrigal try for her glaze? " + figure, 1104,
        ("Dove Kerrigal", "chemist Kerrigal glaze without lead mixtures", "1,104"))
    leaves, said = stated("Eleven Hills", r"([\d,]+) pages")
    ask("lookup", "How many pages had the first edition of the novel Eleven Hills? " + figure, leaves,
        ("Eleven Hills", "Eleven Hills novel first edition pages", said))
    ask("lookup", "What was the name of the one mule that was lost in the March of the Skerrin? " + name, "Bishop",
        ("March of the Skerrin", "March of the Skerrin Harbour War mule", "a mule called Bishop"))
    ask("lookup", "In which battle was the ship of the line Queen Wenna sunk? " + name,
        ("Battle of the Three Lights", "Three Lights"),
        ("Queen Wenna", "ship of the line Queen Wenna", "sunk in 591, at the Battle of the Three Lights"))
    ask("table", "How many ducks were counted at Ostermere in 583? " + figure, w.ducks(583),
        ("Duck Count of Ostermere", "Ostermere ducks counted each year table", f"| 583 | {num(w.ducks(583))} |"))
    ask("table", "Which town's side came second in the Seven Towns Cup of 684? " + name, w.cup(684)[2][1][0],
        ("Seven Towns Cup of 684", "Seven Towns Cup of 684 final table", "| " + " | ".join(map(str, w.cup(684)[2][1]))))
    boat = w.regatta(686)[1]
    ask("table", f"How long did the boat {boat[0]} take to the finish in the Pellamar Regatta of 686? Answer with the time "
                 f"only, as it stands there.", race(boat[3]),
        ("Pellamar Regatta of 686", "Pellamar Regatta of 686 times at the finish", race(boat[3])))
    stop = w.stops("Skarrow Ferry", 1)[2]
    ask("table", "In the timetable of 685, when does the second ferry of the Skarrow Ferry arrive at Ravelsound? Answer with "
                 "the time only, as it stands there.", clock(stop[1]),
        ("Skarrow Ferry", "Skarrow Ferry timetable Ravelsound", f"| {clock(stop[1])} | {clock(stop[2])} |"))
    dry = [y for y in range(570, 601) if w.oil(y) < 150]
    ask("counting", "In how many of the years from 570 to 600, both included, were fewer than 150 casks of lamp oil paid at "
                    "Pellamar? " + figure, len(dry),
        ("Lamp Oil Tally", "lamp oil casks paid each year", *(f"| {y} | {w.oil(y)} |" for y in range(570, 601))))
    goals = sum(a + b for _, _, a, b in w.cup(687)[1])
    ask("counting", "How many goals were scored in all the matches of the Seven Towns Cup of 687 together? " + figure, goals,
        ("Seven Towns Cup of 687", "Seven Towns Cup of 687 matches goals", *(f"{a}:{b}" for _, _, a, b in w.cup(687)[1])))
    small = [t for t in w.names("towns") if w.census(t, 620) < 7000]
    ask("counting", "How many towns in the Census of 620 had fewer than 7,000 inhabitants? " + figure, len(small),
        ("Census of 620", "Census of 620 inhabitants of towns", *(pop(t, 620) for t in small)))

    # Two pages.
    ask("date arithmetic", "In which year of the Old Tally was the Right of Sheep given? " + figure,
        date("Right of Sheep").old_tally(),
        ("Right of Sheep", "Right of Sheep ruling date", date("Right of Sheep")),
        ("Old Tally", "Old Tally reckoning years", "greater by 211 only"))
    born = w.born("Wystan Arrel")
    ask("date arithmetic", "On which day of the week was the chemist Wystan Arrel born? Answer with the name of the day only.",
        born.weekday(),
        ("Wystan Arrel", "Wystan Arrel chemist born", born), week)
    oil = date("Lamp Oil Settlement")
    ask("date arithmetic", "How many days after the Lamp Oil Settlement was the first day of the next year? " + figure,
        days(oil, Date(675, 1, 1)),
        ("Lamp Oil Settlement", "Lamp Oil Settlement date of the treaty", oil), calendar)
    ask("disambiguation", "On what date did the Ansa Torvil die who was a captain? " + day, w.died("Ansa Torvil (captain)"),
        ("Ansa Torvil", "Ansa Torvil", "captain"), ("Ansa Torvil (captain)", "", w.died("Ansa Torvil (captain)")))
    ask("disambiguation", "Two ships were called Grey Heron. By how many ells is the mail steamer longer than the "
                          "survey ship? " + figure, 83 - 39,
        ("Grey Heron (598)", "Grey Heron survey ship", "39 ells", "survey ship"),
        ("Grey Heron (661)", "Grey Heron mail steamer", "83 ells"))
    ask("disambiguation", "On what date was the Mave Ostrell born who was a great-niece of the other First Speaker of "
                          "that name? " + day, w.born("Mave Ostrell (younger)"),
        ("Mave Ostrell", "Mave Ostrell", "First Speaker"), ("Mave Ostrell (younger)", "", w.born("Mave Ostrell (younger)"),
        "great-niece"))
    ask("comparison", "By how many ells is the Cape Vennor Light higher than the Harmony Clock? " + figure, 97 - 61,
        ("Cape Vennor Light", "Cape Vennor Light lighthouse height", "97 ells"),
        ("Harmony Clock", "Harmony Clock tower height", "61 ells"))
    ask("comparison", "How many more inhabitants had Kellisport in the census of 640 than in that of 580? " + figure,
        w.census("Kellisport", 640) - w.census("Kellisport", 580),
        ("Census of 640", "Census of 640", pop("Kellisport", 640)), ("Census of 580", "Census of 580", pop("Kellisport", 580)))
    ask("chain of links", "Who taught the architect of the Skerrin Viaduct? " + name, "Hanne Strode",
        ("Skerrin Viaduct", "Skerrin Viaduct architect", "Pavel Orrin"), ("Pavel Orrin", "", "Hanne Strode"))
    ask("chain of links", "In which town was the author of Rivers Measured born? " + name, "Hestrelgate",
        ("Rivers Measured", "Rivers Measured author", "Hester Blythe-Anning"), ("Hester Blythe-Anning", "", "Hestrelgate"))
    ask("contradiction", "Sources disagree on the year in which the tea ship Morning Teal was launched. Which year do scholars "
                         "follow today? " + figure, 613,
        ("Morning Teal", "Morning Teal tea ship launched", "611", "613"),
        ("Harbours and Their Memory", "", "scholars follow the", "Morning Teal"))
    ask("contradiction", "Sources disagree on the year in which the Vorrin Bridge was completed. Which year do scholars follow "
                         "today? " + figure, 566,
        ("Vorrin Bridge", "Vorrin Bridge completed", "566", "569"), ("Annals of Corvash", "", "Vorrin Bridge",
        "scholars follow the Annals"))

    # Three pages.
    ask("chain of links", "On what date did the founder of the yard die that built the troop ship Stubborn Mule? " + day,
        w.died("Anders Quoyle-Mar"),
        ("Stubborn Mule", "troop ship Stubborn Mule", "Quoyle Yard"), ("Quoyle Yard", "", "Anders Quoyle-Mar"),
        ("Anders Quoyle-Mar", "", w.died("Anders Quoyle-Mar")))
    ask("chain of links", "In which year was the town founded in which the poet of The Swallow and the Harp was born? " + figure,
        int(row["Nessilby"]["founded"]),
        ("The Swallow and the Harp", "The Swallow and the Harp poems", "Orla Venn"), ("Orla Venn", "", "Nessilby"),
        ("Nessilby", "", row["Nessilby"]["founded"]))
    ask("chain of links", "The Barrel Roll recalls a battle. On what date was the commander born who won it? " + day,
        w.born("Ludo Marsh-Ferrow"),
        ("Barrel Roll", "Barrel Roll festival", "Battle of Cask Quay"), ("Battle of Cask Quay", "", "Ludo Marsh-Ferrow"),
        ("Ludo Marsh-Ferrow", "", w.born("Ludo Marsh-Ferrow")))
    ask("contradiction", "By how many is the number of the dead of the Battle of Hollin Heath in the list of battles higher "
                         "than the number that scholars follow today? " + figure, 4000 - 390,
        ("List of battles", "list of battles dead", "4,000"), ("Battle of Hollin Heath", "", "390"),
        ("On the Dating of the Northern Wars", "", "Battle of Hollin Heath"))
    ask("contradiction", "How many years after the Great Fire of Astelbridge, by the date that scholars follow today, was the "
                         "Astelbridge Glass Company founded? " + figure, 526 - 521,
        ("Great Fire of Astelbridge", "Great Fire of Astelbridge year", "521", "523"),
        ("Ashes and Glass", "", "scholars follow the Annals"), ("Astelbridge Glass Company", "Astelbridge Glass Company founded",
        "526"))
    three = {b: cost(b) for b in ("Hestrel Observatory", "Speakers' Hall", "Quay Opera")}
    ask("comparison", "Which cost most: the Hestrel Observatory, the Speakers' Hall or the Quay Opera? Answer with the number "
                      "of crowns that it cost, and nothing else.", max(c for c, _ in three.values()),
        *((b, f"{b} cost in crowns", said) for b, (_, said) in three.items()))
    rivers = ("Lhorne", "Sefflin", "Tamrel")
    ask("comparison", "By the survey in use today, how many leagues are the rivers Sefflin and Tamrel together longer than the "
                      "Lhorne? " + figure, 58 + 96 - 102, *((r, f"river {r} length leagues", row[r]["length"]) for r in rivers))
    ask("disambiguation", "How many inhabitants had the Merrowby that rings no bell, in the census of 580? " + figure,
        w.census("Merrowby (Skarrow)", 580),
        ("Merrowby", "Merrowby", "town"), ("Merrowby (Skarrow)", "", "rings no bell"),
        ("Census of 580", "Census of 580", pop("Merrowby (Skarrow)", 580)))
    ask("date arithmetic", "How many days after the order for a survey of all rivers did the queen die who gave it? " + figure,
        days(date("River Survey Order"), w.died("Wenna II")), ("River Survey Order", "order for a survey of rivers queen Wenna",
        date("River Survey Order")), ("Wenna II", "", w.died("Wenna II")), calendar)
    ask("date arithmetic", "How many days after the Battle of Cask Quay did the Siege of Vorrinmouth begin? " + figure,
        days(date("Battle of Cask Quay"), date("Siege of Vorrinmouth")),
        ("Battle of Cask Quay", "Battle of Cask Quay casks rolled", date("Battle of Cask Quay")),
        ("Siege of Vorrinmouth", "Siege of Vorrinmouth", date("Siege of Vorrinmouth")), calendar)
    ask("date arithmetic", "How many days lay between the launches of the mail steamers Ubrin and Grey Heron? " + figure,
        days(date("Ubrin", "launched"), date("Grey Heron (661)", "launched")),
        ("Ubrin", "mail steamer Ubrin launched", date("Ubrin", "launched")),
        ("Grey Heron (661)", "mail steamer Grey Heron launched", date("Grey Heron (661)", "launched")), calendar)
    cups = range(682, 685)
    ask("counting", "How many matches of the Seven Towns Cups of 682, 683 and 684 together were won by the side that is named "
                    "second, the away side? " + figure, sum(b > a for y in cups for _, _, a, b in w.cup(y)[1]),
        *((f"Seven Towns Cup of {y}", f"Seven Towns Cup of {y}", *(f"{a}:{b}" for _, _, a, b in w.cup(y)[1])) for y in cups))

    # Four pages.
    ask("chain of links", "How many leagues long is the river on which the town lies where the composer of The Ferryman King "
                          "was born? " + figure, int(row["Kestwin"]["length"]),
        ("The Ferryman King", "opera The Ferryman King composer", "Lark Sunder"), ("Lark Sunder", "", "Kellisport"),
        ("Kellisport", "", "Kestwin"), ("Kestwin", "", row["Kestwin"]["length"]))
    ask("chain of links", "On what date was the teacher of the founder of the yard born that built the packet Blue Door? " + day,
        w.born("Anders Quoyle-Mar"),
        ("Blue Door", "packet Blue Door ship", "Loom and Sisters"), ("Loom and Sisters", "", "Freda Loom"),
        ("Freda Loom", "", "Anders Quoyle-Mar"), ("Anders Quoyle-Mar", "", w.born("Anders Quoyle-Mar")))
    printed, said = stated("Sleep in High Places", r"([\d,]+) copies|There were ([\d,]+) of them")
    ask("chain of links", "The physician who first described the use of Greywort had a pupil who wrote a book on sleep. How "
                          "many copies were made of its first edition? " + figure, printed,
        ("Greywort", "Greywort herb fever", "Sabel Trinn"), ("Sabel Trinn", "", "Jorrick Pell"),
        ("Jorrick Pell", "", "Sleep in High Places"), ("Sleep in High Places", "", said))
    ask("chain of links", "Mule Sunday is kept in a town with a viaduct. In which town was the architect of the "
                          "viaduct born? " + name, "Kravell",
        ("Mule Sunday", "Mule Sunday festival", "Skerrin"), ("Skerrin", "", "Skerrin Viaduct"),
        ("Skerrin Viaduct", "", "Pavel Orrin"), ("Pavel Orrin", "", "Kravell"))
    schools = ("University of Corvash", "Uldren Academy", "League College", "Lethanport School of Ships")
    members = {s: int(row[s]["students"]) for s in schools}
    ask("comparison", "By how many is the number of students of the largest of these greater than that of the three others "
                      "together, or smaller: the University of Corvash, the Uldren Academy, the League College and the "
        "Lethanport School of Ships, in 685? Answer with the difference as a positive number only.",
        abs(2 * max(members.values()) - sum(members.values())), *((s, f"{s} students", num(members[s])) for s in schools))
    ships = {s: cost(s) for s in ("Queen Wenna", "Stubborn Mule", "Candle of Sundrey", "Silver Eel")}
    ask("comparison", "Which of these four ships cost the most crowns: Queen Wenna, Stubborn Mule, Candle of Sundrey or Silver "
                      "Eel? Answer with the number of crowns that it cost, and nothing else.", max(c for c, _ in ships.values()),
        *((s, f"ship {s} cost crowns", said) for s, (_, said) in ships.items()))
    high = {t: height(t) for t in ("Dovrane", "Grayle", "Mirrelstow", "Vennor")}
    ask("comparison", "By how many ells do the highest and the lowest of the towns Dovrane, Grayle, Mirrelstow and Vennor "
                      "differ in their height above the sea? " + figure,
        max(h for h, _ in high.values()) - min(h for h, _ in high.values()),
        *((t, f"town of {t}", said) for t, (_, said) in high.items()))
    first, died = Date(612, 6, 3), w.died("Kit Sallow")
    ask("date arithmetic", "The stage of the Quay Opera is flooded for one opera. How many days after its first night did the "
                           "actor die who sang the title part? " + figure, days(first, died),
        ("Quay Opera", "Quay Opera stage floods", "The Ferryman King"), ("The Ferryman King", "", first, "Kit Sallow"),
        ("Kit Sallow", "", died), calendar)
    battle = date("Second Battle of Lhorne Ford")
    ask("date arithmetic", "An order is dated 11 Thaw 717 of the Old Tally. How many days after the Second Battle of Lhorne "
                           "Ford, in the year that scholars follow today, was it written? " + figure,
                           days(battle, Date(506, 1, 11)),
        ("Second Battle of Lhorne Ford", "Second Battle of Lhorne Ford sources year", battle.short(), "505"),
        ("On the Dating of the Northern Wars", "", "Second Battle of Lhorne Ford"),
        ("Old Tally", "Old Tally reckoning years", "211 only"), calendar)
    years = range(685, 689)
    wins = sum(side[1] for y in years for side in w.cup(y)[2] if side[0] == "Corvash")
    ask("counting", "How many matches did Corvash win in the Seven Towns Cups of 685, 686, 687 and 688 together? " + figure, wins,
        *((f"Seven Towns Cup of {y}", f"Seven Towns Cup of {y}", *(" | ".join(map(str, side)) for side in w.cup(y)[2]
        if side[0] == "Corvash")) for y in years))
    feasts = ("Feast of Blue Doors", "Oath Day", "Pump Hymn", "Candle Auction")
    crowd = {f: pages.winner(f, 685) for f in feasts}
    ask("counting", "How many people competed in 685 at the Feast of Blue Doors, Oath Day, the Pump Hymn and the Candle Auction "
                    "together? " + figure, sum(n for _, n in crowd.values()),
        *((f, f"festival {f} winners", f"| 685 | {who} | {n} |") for f, (who, n) in crowd.items()))
    ask("contradiction", "By the years that scholars follow today, how many years after the foundation of Kellisport was the "
                         "Great Fire of Astelbridge? " + figure, 521 - 331,
        ("Kellisport", "Kellisport town founded", "318", "331"), ("Harbours and Their Memory", "", "Kellisport"),
        ("Great Fire of Astelbridge", "Great Fire of Astelbridge", "521"), ("Ashes and Glass", "", "Great Fire"))

    # Five pages.
    ask("chain of links", "The author of Boots and How to Cook Them had a teacher, and that teacher had one, too. In which year "
                          "was the town founded in which the latter was born? " + figure, int(row["Gullwick"]["founded"]),
        ("Boots and How to Cook Them", "Boots and How to Cook Them", "Odo Branwick"), ("Odo Branwick", "", "Rennet Vaille"),
        ("Rennet Vaille", "", "Joss Arkel"), ("Joss Arkel", "", "Gullwick"), ("Gullwick", "", row["Gullwick"]["founded"]))
    charter, said = stated("Lethanport", r"fair came in (\d+)|In (\d+) the town received|Since (\d+), when a charter")
    ask("chain of links", "The founder of the yard that built the lake steamer Nine Cantons had a teacher. In which year was "
                          "the charter granted to the town where the teacher was born? " + figure, charter,
        ("Nine Cantons", "lake steamer Nine Cantons", "Loom and Sisters"), ("Loom and Sisters", "", "Freda Loom"),
        ("Freda Loom", "", "Anders Quoyle-Mar"), ("Anders Quoyle-Mar", "", "Lethanport"), ("Lethanport", "", said))
    harmony, said = cost("Harmony Clock")
    ask("chain of links", "The author of Tides Repeat taught a mathematician, and he a clockmaker. How many crowns did the "
                          "clock tower cost that the latter designed? " + figure, harmony,
        ("Tides Repeat", "Tides Repeat mathematics", "Oda Pellwin"), ("Oda Pellwin", "", "Merek Dunnow"),
        ("Merek Dunnow", "", "Perrin Dask"), ("Perrin Dask", "", "Harmony Clock"), ("Harmony Clock", "", said))
    ask("chain of links", "The Pump Hymn is kept in a town with a pumping station. On what date was the teacher of its "
                          "architect born? " + day, w.born("Pavel Orrin"),
        ("Pump Hymn", "Pump Hymn festival", "Marrendy"), ("Marrendy", "", "Marrendy Pump House"),
        ("Marrendy Pump House", "", "Maud Hallick"), ("Maud Hallick", "", "Pavel Orrin"),
        ("Pavel Orrin", "", w.born("Pavel Orrin")))
    five = {r: flood(r) for r in ("Ashle", "Ilvane", "Kestwin", "Mirrel", "Yarrowin")}
    ask("comparison", "Of the rivers Ashle, Ilvane, Kestwin, Mirrel and Yarrowin, each had a highest known flood. In which year "
                      "was the earliest of these five floods? " + figure, min(year for year, _ in five.values()),
        *((r, f"river {r} flood", said) for r, (_, said) in five.items()))
    firms = ("Pethwick Button Works", "Kellis Pianos", "Uldren Cheese Union", "Oriveld Mirror Works", "Vorrin Ropeworks")
    lengths = [strike(c)[0] for c in firms]
    ask("comparison", "Each of these firms had one strike: Pethwick Button Works, Kellis Pianos, Uldren Cheese Union, Oriveld "
                      "Mirror Works and Vorrin Ropeworks. By how many days was the longest longer than the shortest? " + figure,
        max(lengths) - min(lengths), *((c, f"{c} strike", strike(c)[1]) for c in firms))
    uldren = [w.census("Uldren", y) for y in (580, 600, 620, 640, 660)]
    ask("comparison", "Between which two consecutive censuses from 580 to 660 did Uldren gain most inhabitants? Answer with the "
                      "number that it gained only.", max(b - a for a, b in zip(uldren, uldren[1:])),
        *((f"Census of {y}", f"Census of {y} counted people in towns alphabetical order", num(n)) for y,
        n in zip((580, 600, 620, 640, 660), uldren)))
    years = range(681, 686)
    ask("counting", "How many goals did Tillenham score in the Seven Towns Cups of 681 to 685, both included? " + figure,
        sum(s[4] for y in years for s in w.cup(y)[2] if s[0] == "Tillenham"),
        *((f"Seven Towns Cup of {y}", f"Seven Towns Cup of {y}", *(" | ".join(map(str, s)) for s in w.cup(y)[2]
        if s[0] == "Tillenham")) for y in years))
    firms = ("Quoyle Yard", "Sundrey Tea Exchange", "Bredhold Chain Forge", "Arrendell Linen Hall", "Hollowell Press")
    ask("counting", "How many people did Quoyle Yard, the Sundrey Tea Exchange, the Bredhold Chain Forge, the Arrendell Linen "
                    "Hall and the Hollowell Press employ together in 640? " + figure, sum(w.hands(c, 640) for c in firms),
        *((c, f"{c} wage books hands", f"| 640 | {num(w.hands(c, 640))} |") for c in firms))
    brida, tam = w.born("Brida Noll"), w.born("Tam Ridley-Ost")
    ask("date arithmetic", "A novel is named after the one street that the Great Fire of Astelbridge spared. By how many days "
                           "was its author younger than her teacher? " + figure, days(tam, brida),
        ("Great Fire of Astelbridge", "Great Fire of Astelbridge street spared", "Cooper's Row"),
        ("A House in Cooper's Row", "novel Cooper's Row", "Brida Noll"), ("Brida Noll", "", brida, "Tam Ridley-Ost"),
        ("Tam Ridley-Ost", "", tam), calendar)
    ask("contradiction", "By the years that scholars follow today, how many years after the birth of the first climber of Mount "
                         "Hestrel was the Vorrin Bridge completed? " + figure, 566 - 544,
        ("Mount Hestrel", "Mount Hestrel first ascent", "Joss Arkel"), ("Joss Arkel", "", "541", "544"),
        ("Rennet Vaille", "", "scholars follow the"), ("Vorrin Bridge", "Vorrin Bridge completed", "566"),
        ("Annals of Corvash", "", "Vorrin Bridge"))
    light, observatory = cost("Cape Vennor Light"), cost("Hestrel Observatory")
    ask("disambiguation", "Of the two engineers named Strode, one taught the other. How many crowns did the lighthouse and the "
                          "observatory that the pupil designed cost together? " + figure, light[0] + observatory[0],
        ("Strode", "Strode", "engineer"), ("Ellan Strode", "", "Hanne Strode"), ("Hanne Strode", "", "Hestrel Observatory"),
        ("Cape Vennor Light", "", light[1]), ("Hestrel Observatory", "", observatory[1]))
    return out
