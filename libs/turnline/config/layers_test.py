"""Merging layers, and that environment and YAML are two spellings of the same settings."""

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnline.config import load_settings
from turnline.config.env_source import environment_variables, read_variables
from turnline.config.layers import build, flatten, overlay
from turnline.config.suggest import environment_name
from turnline.config.yaml_source import read_yaml

KEYS = st.sampled_from(["a", "b", "c.d"])
# A loaded machine must not fail a test.
UNTIMED = settings(deadline=None)

# Few characters, those that mean something to YAML, JSON or a variable's name among them.
TEXTS = st.text("abAB01_.:#-<>{}[]&*!|?'\"\\ \n\té\u2028\x00", max_size=12)
PRINTABLE = TEXTS.filter(lambda text: "\x00" not in text)
SCALARS = st.one_of(st.booleans(), st.integers(), PRINTABLE, st.lists(st.integers(), max_size=2))
TREES = st.recursive(
    st.dictionaries(KEYS, SCALARS, max_size=3),
    lambda inner: st.dictionaries(KEYS, st.one_of(SCALARS, inner), max_size=3),
    max_leaves=12,
)

LEAVES: dict[tuple[str, ...], st.SearchStrategy[Any]] = {
    ("execution", "mode"): st.sampled_from(["rest_sync", "rest_async", "stream", "async"]),
    ("execution", "turn_timeout"): st.floats(1, 1000),
    ("execution", "queues", "type"): st.sampled_from(["in_memory", "nats", "kafka", "sqs"]),
    ("execution", "queues", "input", "no_of_consumers"): st.integers(1, 1024),
    ("execution", "queues", "nats", "auto_provision"): st.booleans(),
    ("execution", "queues", "kafka", "client_config"): st.dictionaries(
        st.sampled_from(["linger.ms", "acks", "security.protocol"]), st.integers(), min_size=1
    ),
    ("execution", "response_store", "retry_count"): st.integers(1, 1000),
    ("session", "valkey", "prefix"): PRINTABLE.filter(lambda text: text and "<file:" not in text),
    ("session", "type"): st.sampled_from(["in_memory", "valkey"]),
    ("api", "port"): st.integers(0, 65_535),
    ("api", "host"): st.sampled_from(["::", "127.0.0.1", "yes", "null", "1e3"]),
}
NAMES = st.lists(st.sampled_from(["execution", "API", "queues", "port", "x", "_", "__"])).map(
    lambda words: "AK_" + "__".join(words)
)
REQUIRED = {("execution", "queues", "type"), ("session", "type")}
CHOICES = st.fixed_dictionaries(
    {path: LEAVES[path] for path in REQUIRED},
    optional={path: values for path, values in LEAVES.items() if path not in REQUIRED},
)


def nested(choice: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in choice.items():
        block = tree
        for key in path[:-1]:
            block = block.setdefault(key, {})
        block[path[-1]] = value
    return tree


def variables(choice: dict[tuple[str, ...], Any]) -> dict[str, str]:
    return {
        environment_name(path): value if isinstance(value, str) else json.dumps(value)
        for path, value in choice.items()
    }


def deep_merge(low: object, high: object) -> object:
    if not (isinstance(low, dict) and isinstance(high, dict)):
        return high
    merged = {**low}
    for key, value in high.items():
        merged[key] = deep_merge(low[key], value) if key in low else value
    return merged


@UNTIMED
@given(TREES)
def test_flattening_and_building_are_inverse(tree: dict[str, Any]) -> None:
    assert build(flatten(tree, lambda _: "x")) == tree


@UNTIMED
@given(TREES, TREES)
def test_overlaying_is_a_deep_merge_in_which_the_later_layer_wins(
    low: dict[str, Any], high: dict[str, Any]
) -> None:
    layers = [flatten(low, lambda _: "low"), flatten(high, lambda _: "high")]

    merged = overlay(layers)

    assert build(merged) == deep_merge(low, high)
    assert all(merged[path] in (layers[0].get(path), layers[1].get(path)) for path in merged)


@UNTIMED
@given(TREES)
def test_yaml_reads_back_what_was_written_with_one_line_per_leaf(tree: dict[str, Any]) -> None:
    text = yaml.safe_dump(tree, default_flow_style=False)

    leaves, faults = read_yaml(text, name="c")

    assert faults == []
    assert build(leaves) == tree
    assert all(1 <= int(leaf.origin[2:]) <= text.count("\n") for leaf in leaves.values())


@settings(UNTIMED, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHOICES, CHOICES)
def test_environment_over_yaml_equals_the_merged_yaml_alone(
    tmp_path: Path, low: dict[tuple[str, ...], Any], high: dict[tuple[str, ...], Any]
) -> None:
    (tmp_path / "low.yaml").write_text(yaml.safe_dump(nested(low)))
    merged = yaml.safe_dump(deep_merge(nested(low), nested(high)))
    (tmp_path / "merged.yaml").write_text(merged)

    mixed = load_settings(environ=variables(high), cwd=tmp_path, path=tmp_path / "low.yaml")
    alone = load_settings(environ={}, cwd=tmp_path, path=tmp_path / "merged.yaml")

    assert mixed.settings == alone.settings
    assert all(
        mixed.origin(".".join(path)).startswith("env AK_")
        for path in high
        if path[-1] != "client_config"
    )


@UNTIMED
@given(st.dictionaries(NAMES, TEXTS, max_size=4))
def test_no_variable_whatever_its_name_or_value_breaks_the_reader(environ: dict[str, str]) -> None:
    leaves, faults = read_variables(environment_variables(environ))

    assert all(leaf.origin.startswith("env AK_") for leaf in leaves.values())
    assert all(fault.startswith("env AK_") for fault in faults)


@UNTIMED
@given(st.lists(TEXTS, max_size=6).map("".join))
def test_no_text_breaks_the_yaml_reader(text: str) -> None:
    _, faults = read_yaml(text, name="c")

    assert all(fault.startswith("c") for fault in faults)
