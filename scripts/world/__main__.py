"""Makes the bundled corpus, a small encyclopedia of an invented world, and the questions about it.

python3 scripts/world           writes tools/web/corpus/world/world.jsonl, what is embedded of it, and the dataset
python3 scripts/world --check   compares what is there with what would be written

The facts are tables (facts.txt), and prose.txt has the ways of telling them; essays.txt and more.txt have pages that are written
out, and pages that only lead to others. What no table says is drawn from a hash of its name: the same on every machine.
"""

import bz2
import json
import math
import re
import sys
import unicodedata
from collections import Counter, defaultdict

sys.dont_write_bytecode = True

from model import ADDRESS, HERE, Facts, slug
from pages import Pages
from questions import far, finds, plain, questions

ROOT = HERE.parent.parent
CORPUS = ROOT / "tools/web/corpus/world/world.jsonl"
DATASET = ROOT / "datasets/bundled/research/questions.yaml"


class Index:
    """BM25 with k1 0.9 and b 0.4 over all letters and digits in lower case."""

    def __init__(self, texts):
        counts = {title: Counter(self.terms(title + "\n" + text)) for title, text in texts.items()}
        self.length = {title: sum(c.values()) for title, c in counts.items()}
        self.mean = sum(self.length.values()) / len(counts)
        self.postings = defaultdict(list)
        for title, count in counts.items():
            for term, n in count.items():
                self.postings[term].append((title, n))

    @staticmethod
    def terms(text):
        return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())

    def search(self, query, limit):
        scores = defaultdict(float)
        for term in self.terms(query):
            found = self.postings[term]
            weight = math.log(1 + (len(self.length) - len(found) + 0.5) / (len(found) + 0.5))
            for title, n in found:
                scores[title] += weight * n / (n + 0.9 * (1 - 0.4 + 0.4 * self.length[title] / self.mean))
        return sorted(scores, key=lambda title: (-scores[title], title))[:limit]


def prove(asked, pages):
    """What is wrong with the questions: what a solution does not find, answers that two have in common."""
    index, wrong, answers = Index(pages.text), [], Counter(str(q.answer).lower() for q in asked)
    wrong += [f"two questions have the answer {answer}" for answer, n in answers.items() if n > 1]
    wrong += [f"{n} questions need {steps} pages, want 12" for steps, n in Counter(q.steps for q in asked).items() if n != 12]
    for q in asked:
        seen = ""
        for page, query, evidence in q.reads:
            text = pages.text[page]
            if query and page not in index.search(query, 3):
                wrong.append(f"{query!r} finds {index.search(query, 3)}, want {page}")
            if not query and f"({ADDRESS}{slug(page)})" not in seen:
                wrong.append(f"{q.prompt!r}: no link leads to {page}")
            lines = text.split("\n")
            shown = lines[:100]
            if far(text, evidence):
                shown += [line for line in lines[100:] if re.search(finds(evidence), line)]
            shown = "\n".join(shown)
            wrong += [f"{q.prompt!r}: {page} does not say {e!r}" for e in evidence if e not in plain(shown)]
            seen += shown
    return wrong


def main():
    pages = Pages(Facts())
    asked = questions(pages.w, pages)
    wrong = prove(asked, pages)
    for title, text in pages.text.items():
        words = len(re.sub(r"\([^)]*\)|[|#*]", " ", text).split())
        if words < 80 and title not in pages.short():
            wrong.append(f"{title} has only {words} words")
    if wrong:
        sys.exit("\n".join(wrong))
    documents = [{"id": slug(t), "title": t, "url": ADDRESS + slug(t), "text": pages.text[t]} for t in pages.titles]
    corpus = "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
    note = "# Questions about the bundled corpus. scripts/world makes this file; change it there.\n\n"
    dataset = note + "\n".join(q.yaml(i + 1, pages) for i, q in enumerate(asked))
    packed = CORPUS.with_suffix(".jsonl.bz2")
    if "--check" in sys.argv:
        stale = [path.name for path, want in ((CORPUS, corpus), (DATASET, dataset))
                 if not path.exists() or path.read_text() != want]
        if not packed.exists() or bz2.decompress(packed.read_bytes()).decode() != corpus:
            stale.append(packed.name)
        if stale:
            sys.exit(f"{', '.join(stale)}: not what python3 scripts/world makes; run it")
        return
    for path, data in ((CORPUS, corpus.encode()), (packed, bz2.compress(corpus.encode())), (DATASET, dataset.encode())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(pages.titles)} pages, {len(corpus.encode())} bytes, {packed.stat().st_size} packed, {len(asked)} questions")


if __name__ == "__main__":
    main()
