"""Answers questions about Turnline from its own documentation, offline.

Each section of each Markdown file is a row of an SQLite full-text index.  A question finds the
sections that hold most of its words, best first by BM25; the agent streams the best one and names
the others.  "Tell me more" goes on with the question before.  What fits no section, it says so.
"""

import asyncio
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from turnline.agent import Reply, Turn, agent

HERE = Path(__file__).resolve().parent
BUNDLED = HERE / "docs"
REPOSITORY_FILES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**/*.md")
MAX_WORDS = 16
# Words that say nothing about what a question is about.
STOP_WORDS = """
    a about again all also an and any are as at be been but by can continue could deeper detail
    details did do does elaborate else for from get gets give go goes had happen happens has
    have hello hey hi how i if in into is it its just know let like make may me mean means more
    much must my need no not of on one or our please say says should show so some something such
    support supported tell than thanks that the their them then there these they this to us use
    used using want was we what when where which who why will with work works would yes you your
"""
STOP = frozenset(STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of a file and the text below it."""

    file: str
    heading: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.file}, “{self.heading}”"


class Library:
    """Sections, findable by the words of a question."""

    def __init__(self, sections: Iterable[Section]) -> None:
        self._sections = list(sections)
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(
            "CREATE VIRTUAL TABLE s USING fts5(heading, text, tokenize='porter unicode61')"
        )
        rows = ((place, s.heading, s.text) for place, s in enumerate(self._sections))
        self._index.executemany("INSERT INTO s(rowid, heading, text) VALUES (?, ?, ?)", rows)

    def find(self, words: list[str]) -> list[Section]:
        """Give the sections that hold at least half of the words, best first."""
        score: dict[int, float] = defaultdict(float)
        found: dict[int, int] = defaultdict(int)
        query = "SELECT rowid, bm25(s, 10.0, 1.0) FROM s WHERE s MATCH ?"
        for word in words:
            for place, bm25 in self._index.execute(query, (f'"{word}"',)):
                score[place] -= bm25
                found[place] += 1
        fitting = [place for place in score if found[place] * 2 >= len(words)]
        return [self._sections[place] for place in sorted(fitting, key=lambda p: -score[p])]


def sections_of(path: Path, shown_as: str) -> Iterator[Section]:
    """Split a Markdown file at its headings; a `#` inside a code block is none."""
    heading, lines, in_code = path.stem, [], False
    for line in [*path.read_text(encoding="utf-8").splitlines(), "# "]:
        in_code ^= line.startswith("```")
        if in_code or not (title := re.match(r"#{1,6} (.*)", line)):
            lines.append(line)
            continue
        if text := "\n".join(lines).strip():
            yield Section(shown_as, heading, text)
        heading, lines = title[1].strip(), []


def documents() -> Iterator[tuple[Path, str]]:
    """Give each file with the name to show for it."""
    if folder := os.environ.get("TURNLINE_DOCS"):
        yield from ((p, str(p.relative_to(folder))) for p in sorted(Path(folder).rglob("*.md")))
        return
    yield from ((path, path.name) for path in sorted(BUNDLED.glob("*.md")))
    root = HERE.parent.parent
    if (root / "pants.toml").is_file():
        for pattern in REPOSITORY_FILES:
            yield from ((path, str(path.relative_to(root))) for path in sorted(root.glob(pattern)))


@cache
def library() -> Library:
    return Library(s for path, name in documents() for s in sections_of(path, name))


def words_of(prompt: str) -> list[str]:
    """Give the words of a question that say what it is about, each once."""
    words = dict.fromkeys(re.findall(r"\w+", prompt.lower().replace("'s", "")))
    telling = [word for word in words if word not in STOP and word != "turnline"]
    return telling[:MAX_WORDS] or (["turnline"] if "turnline" in words else [])


def question_of(turn: Turn) -> tuple[list[str], list[str]]:
    """Give what is asked, and the sections shown already when it goes on with a question before."""
    if words := words_of(turn.prompt):
        return words, []
    asked = (words_of(record.prompt) for record in reversed(turn.history))
    return next(filter(None, asked), []), list(turn.state.get("shown", []))


@agent("docs", description="Answers questions about Turnline from its documentation")
async def docs(turn: Turn) -> AsyncIterator[str | Reply]:
    words, shown = question_of(turn)
    if not words:
        yield "Ask me about Turnline: its client modes, guarantees, configuration or agents."
        return
    found = (await asyncio.to_thread(library)).find(words)
    fresh = [section for section in found if section.name not in shown]
    if not fresh:
        again = "nothing more" if shown else "nothing"
        yield f"I found {again} in Turnline's documentation about: {' '.join(words)}."
        return
    best, *others = fresh
    yield f"From {best.name}:\n\n"
    for piece in re.findall(r"\s*\S+", best.text):
        yield piece
    if others:
        yield f"\n\nSee also {'; '.join(section.name for section in others[:2])}."
    turn.state["shown"] = [*shown, best.name]
    yield Reply(text="", extra={"sources": [section.name for section in fresh[:3]]})
