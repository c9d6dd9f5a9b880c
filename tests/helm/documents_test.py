"""What is said twice is the same in both places."""

import json
from itertools import pairwise
from typing import Any

import yaml

from helm import settings_schema, values_table
from helm.chart import AGENTS, CHART, ROOT, flavour, merged, render
from turnline.config.settings import Settings
from turnline.transport.kafka import topology as kafka_topology
from turnline.transport.nats import topology as nats_topology

COMPOSE_ALERTS = ROOT / "deploy" / "compose" / "observability" / "alerts.yaml"


def test_the_schema_holds_the_settings_of_today() -> None:
    schema = json.loads(settings_schema.SCHEMA.read_text())

    assert schema == settings_schema.with_settings(schema), "python -m helm.settings_schema"


def test_every_block_of_the_schema_refuses_what_it_does_not_name() -> None:
    schema = json.loads(settings_schema.SCHEMA.read_text())
    blocks = {name: each for name, each in schema["$defs"].items() if "properties" in each}

    assert blocks.keys() > {"SettingsApi", "SettingsNats", "part"}
    assert schema["additionalProperties"] is False
    assert [name for name, each in blocks.items() if each["additionalProperties"]] == []


def test_the_table_of_values_is_that_of_the_chart() -> None:
    text = values_table.README.read_text()

    assert text == values_table.with_table(text), "python -m helm.values_table"


def test_every_value_is_described() -> None:
    described = values_table.table()
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def leaves(block: dict[str, Any], *path: str) -> list[str]:
        found: list[str] = []
        for name, value in block.items():
            deeper = isinstance(value, dict) and value and name != "resources"
            found += leaves(value, *path, name) if deeper else [".".join((*path, name))]
        return found

    parts = ("agentRunner", "scaler")
    wanted = [
        leaf
        for leaf in leaves(values)
        # A part's own numbers are described once, at `defaults`.
        if not (leaf.startswith(parts) and leaf.split(".")[-1] in values["defaults"])
        and not leaf.startswith("settings.")
    ]
    assert [leaf for leaf in wanted if f"| `{leaf}` |" not in described] == []


def test_the_alerts_are_those_of_compose() -> None:
    ours = (CHART / "files" / "alerts.yaml").read_text()

    assert ours == COMPOSE_ALERTS.read_text()
    values = merged(flavour("baremetal"), AGENTS)
    (rule,) = render(values).all("PrometheusRule")
    (group,) = yaml.safe_load(ours)["groups"]
    (rendered,) = rule["spec"]["groups"]
    for one, other in zip(group["rules"], rendered["rules"], strict=True):
        if one["alert"] == "TurnlineServiceMissing":
            # It depends on which parts there are.
            del one["expr"]
        assert other | one == other


def test_letters_that_are_held_ring_and_a_long_turn_alone_does_not() -> None:
    (group,) = yaml.safe_load(COMPOSE_ALERTS.read_text())["groups"]
    expressions = {rule["alert"]: rule["expr"] for rule in group["rules"]}

    assert expressions["TurnlineDeadLetters"] == "max by (queue) (turnline_queue_dead) > 0"
    oldest, waiting = expressions["TurnlineTurnsWait"].split(" and on (queue) ")
    assert oldest == "max by (queue) (turnline_queue_oldest_age_seconds) > 60"
    assert waiting == "max by (queue) (turnline_queue_waiting) > 0"


def test_the_defaults_that_templates_repeat_are_the_products() -> None:
    queues: Any = Settings.model_validate(
        {"execution": {"queues": {"type": "nats"}}}
    ).execution.queues
    text = (CHART / "templates" / "_broker.tpl").read_text()
    nats, kafka = queues.nats.model_dump(), queues.kafka.model_dump()
    for defaults, block in ((nats, "turnline.natsOptions"), (kafka, "turnline.kafkaOptions")):
        words = text.split(f'define "{block}"')[1].split("mergeOverwrite")[0].split()
        told = dict(pairwise(words))
        names = [name for name in defaults if f'"{name}"' in told]
        assert len(names) >= 7
        for name in names:
            value = told[f'"{name}"']
            assert json.loads(value) == defaults[name], name


def test_the_numbers_that_templates_repeat_are_the_transports() -> None:
    nack = (CHART / "templates" / "nack.yaml").read_text()
    strimzi = (CHART / "templates" / "strimzi.yaml").read_text()

    assert f"maxWaiting: {nats_topology.MAX_WAITING}\n" in nack
    assert f"maxMsgs: {nats_topology.MAX_UNSPENT}\n" in nack
    bytes_of_letters = kafka_topology.MAX_MESSAGE_BYTES + kafka_topology.LETTER_ROOM_BYTES
    assert f'"{kafka_topology.MAX_MESSAGE_BYTES}"' in strimzi
    assert f'"{bytes_of_letters}"' in strimzi
