"""The rows that clients are held against are those of the failure table of today."""

import json

import pytest

from contract.proto.statuses import STATUSES, text
from turnline.errors import CODES, Code

ROWS = {row["name"]: row for row in json.loads(STATUSES.read_text(encoding="utf-8"))}


def test_the_file_is_what_the_failure_table_makes() -> None:
    assert STATUSES.read_text(encoding="utf-8") == text()


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_row_with_its_status_and_its_hint(code: Code) -> None:
    row, meaning = ROWS[code.value], CODES[code]

    assert row["status"]["code"] == meaning.grpc_status
    assert row["error"]["status_code"] == meaning.http_status
    assert [kind["metadata"]["retry"] for kind in row["details"] if "metadata" in kind] == [
        meaning.retry.value
    ]
