"""The schema of signals holds to its own rules."""

import re

import pytest

from turnline.errors import Code
from turnline.telemetry import declared_events, declared_fields, names
from turnline.telemetry.redaction import is_private
from turnline.telemetry.schema import CounterSpec, EventSpec, HistogramSpec, Metric


def test_no_signal_is_declared_twice() -> None:
    for group in (names.METRICS, names.EVENTS, names.SPANS):
        listed = [signal.name for signal in group]
        assert len(listed) == len(set(listed))


@pytest.mark.parametrize("spec", names.METRICS, ids=lambda spec: spec.name)
def test_a_metrics_name_says_its_unit_and_type(spec: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z_]+", spec.name)
    assert spec.name.endswith("_total") == isinstance(spec, CounterSpec)
    assert spec.name.endswith("_seconds") == (spec.unit == "seconds")


@pytest.mark.parametrize("spec", names.METRICS, ids=lambda spec: spec.name)
def test_a_metrics_labels_take_a_bounded_number_of_values(spec: Metric) -> None:
    for label in spec.labels:
        assert bool(label.values) != bool(label.pattern)
        assert "*" not in label.pattern
        assert "+" not in label.pattern


def test_buckets_rise() -> None:
    for spec in names.METRICS:
        if isinstance(spec, HistogramSpec):
            assert list(spec.buckets) == sorted(set(spec.buckets))


def test_stages_of_a_turn_are_timed_from_a_millisecond_to_ten_minutes() -> None:
    assert names.TURN_STAGE_SECONDS.buckets[0] == 0.001
    assert names.TURN_STAGE_SECONDS.buckets[-1] == 600.0


def test_every_failure_code_can_label_a_dead_letter() -> None:
    (label,) = [one for one in names.DEAD_LETTERS_TOTAL.labels if one.name == "reason_code"]

    assert set(label.values) == {code.value for code in Code}


@pytest.mark.parametrize("event", names.EVENTS, ids=lambda event: event.name)
def test_an_event_is_a_subject_and_what_happened(event: EventSpec) -> None:
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", event.name)
    assert event.help.endswith(".")


def test_no_event_declares_a_field_that_would_be_blanked() -> None:
    declared = {field for event in names.EVENTS for field in event.fields}
    declared |= set(names.BOUND_FIELDS)

    assert {field for field in declared if is_private(field)} == set()


def test_no_span_declares_an_attribute_that_would_be_blanked_in_a_log() -> None:
    declared = {attribute for span in names.SPANS for attribute in span.attributes}

    assert {attribute for attribute in declared if is_private(attribute)} == set()


def test_the_fields_of_an_event_can_be_asked_for() -> None:
    assert "turn.failed" in declared_events()
    assert declared_fields("turn.failed") == {"code"}
    with pytest.raises(KeyError):
        declared_fields("turn.exploded")
