"""What the documents name is there: files, tests, decisions, and the targets of links."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parents[2]
DECISIONS = ROOT / "docs/adr"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *DECISIONS.glob("*.md"),
    *ROOT.glob("docs/api/*.md"),
    *ROOT.glob("docs/operations/*.md"),
    *ROOT.glob("tests/contract/**/*.md"),
]

_LINK = re.compile(r"\]\(([^)#:]+)\)")
_QUOTED = re.compile(r"`([^` ]+)`")


def named_tests(text: str) -> Iterator[tuple[str, str]]:
    """The tests a text names: `a_test.py::test_x`, then `…::test_y` and `…end_of_a_name` of it."""
    file = ""
    for quoted in _QUOTED.findall(text):
        path, _, name = quoted.partition("::")
        if path.endswith("_test.py"):
            file = path
        if name or quoted.startswith("…"):
            yield file, name or quoted.removeprefix("…")


def names_in(file: str) -> set[str]:
    """The tests of a file, named by its path or, if there is only one of it, by its name."""
    (path,) = [
        found
        for root in ("libs", "services", "tests")
        for found in (ROOT / root).rglob(Path(file).name)
        if found.as_posix().endswith(f"/{file}")
    ]
    return set(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_a_document_lead_somewhere(document: Path) -> None:
    links = _LINK.findall(document.read_text(encoding="utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_tests_that_prove_the_guarantees_are_there() -> None:
    named = list(named_tests(ARCHITECTURE))

    missing = [
        (file, name)
        for file, name in named
        if not any(test.endswith(name) for test in names_in(file))
    ]

    assert named
    assert missing == []


def test_the_files_the_architecture_names_are_there() -> None:
    quoted = [text.partition("::")[0] for text in _QUOTED.findall(ARCHITECTURE)]
    paths = [text for text in quoted if "/" in text]

    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_decision_is_in_the_index() -> None:
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    decisions = sorted(path.name for path in DECISIONS.glob("0*.md"))

    assert re.findall(r"\((0[^)]+)\)", index) == decisions
