"""The operators' page is what `names` says."""

from pathlib import Path

from turnline.telemetry import names
from turnline.telemetry.docs import render

_PAGE = Path(__file__).parents[3] / "docs" / "telemetry.md"


def test_the_page_is_fresh() -> None:
    """Otherwise: python -m turnline.telemetry.docs > docs/telemetry.md."""
    assert _PAGE.read_text(encoding="utf-8") == render()


def test_the_page_names_every_signal() -> None:
    page = render()

    signals = [
        *(spec.full_name for spec in names.METRICS),
        *(event.name for event in names.EVENTS),
        *(span.name for span in names.SPANS),
    ]
    assert [name for name in signals if f"| `{name}` |" not in page] == []
