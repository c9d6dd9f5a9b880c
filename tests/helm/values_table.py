"""The table of values in the chart's README, made of values.yaml and its comments.

    PYTHONPATH=libs:tests python -m helm.values_table

writes it anew.
"""

import re
from collections.abc import Iterator
from pathlib import Path

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "turnline"
README = CHART / "README.md"
BEGIN, END = "<!-- values: begin -->", "<!-- values: end -->"
HEAD = "| value | default | what |\n|---|---|---|\n"

_LINE = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z]+):(?: (?P<value>.*))?$")


def table() -> str:
    """Give the table."""
    return HEAD + "".join(f"| {cells} |\n" for cells in _rows())


def with_table(text: str) -> str:
    """Give the README's text with today's table."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}{END}{rest.split(END)[1]}"


def _rows() -> Iterator[str]:
    path: list[str] = []
    comment: list[str] = []
    for line in (CHART / "values.yaml").read_text().splitlines():
        if line.strip().startswith("#"):
            comment.append(line.strip().lstrip("# "))
            continue
        found = _LINE.fullmatch(line)
        if found:
            path = [*path[: len(found["indent"]) // 2], found["key"]]
            if (comment and path[0] != "settings") or line.startswith("settings"):
                yield " | ".join((f"`{'.'.join(path)}`", _default(found["value"]), *comment))
        comment = []


def _default(value: str | None) -> str:
    return f"`{value}`" if value else ""


def main() -> None:
    """Write it."""
    README.write_text(with_table(README.read_text()))


if __name__ == "__main__":
    main()
