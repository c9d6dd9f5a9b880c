"""Reading YAML: lines, duplicates, syntax."""

import pytest

from turnline.config.layers import build
from turnline.config.yaml_source import read_yaml


def test_each_leaf_knows_its_line() -> None:
    leaves, faults = read_yaml("a: 1\nb:\n  c: [1,\n    2]\n  d: {}\n", name="c")

    assert faults == []
    assert {".".join(path): leaf.origin for path, leaf in leaves.items()} == {
        "a": "c:1",
        "b.c": "c:3",
        "b.d": "c:5",
    }


def test_a_key_written_twice_is_a_fault_that_names_both_lines() -> None:
    _, faults = read_yaml("a:\n  b: 1\n  c: 2\n  b: 3\n", name="c")

    assert faults == ["c:4: a.b: the key is written twice, first on line 2; remove one"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [1\nb: 2\n", "c:2:2: the YAML is not well-formed: "),
        ("a:\n\tb: 1\n", "c:2:1: the YAML is not well-formed: "),
        ("a: *b\n", "c:1:4: the YAML is not well-formed: "),
        ("a: !x 1\n", "c:1:4: the YAML is not well-formed: "),
        ("a: 1\n---\nb: 1\n", "c:2:1: the YAML is not well-formed: "),
        ("- 1\n", "c:1: the file is no block of settings"),
        ("text\n", "c:1: the file is no block of settings"),
        ("a: &a\n  b: *a\n", "c:1: a.b: the block contains itself"),
        ("? [1]\n: 2\n", "c:1: the file: a key must be plain text"),
        ("a: \x00\n", "c: holds characters YAML does not allow"),
    ],
)
def test_what_is_no_settings_file_is_a_fault_with_line_and_column(text: str, fault: str) -> None:
    _, faults = read_yaml(text, name="c")

    assert [found[: len(fault)] for found in faults] == [fault]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~\n", "a:\nb: ~\n"])
def test_nothing_written_is_no_settings(text: str) -> None:
    assert read_yaml(text, name="c") == ({}, [])


def test_merge_keys_bring_in_what_the_block_does_not_write_itself() -> None:
    leaves, faults = read_yaml("x: &x {y: 1, z: 2}\nb:\n  z: 3\n  <<: *x\n", name="c")

    assert faults == []
    assert build(leaves)["b"] == {"y": 1, "z": 3}
