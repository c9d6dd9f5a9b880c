"""Compares the objects wanted with those on the server; creates and updates them on demand.

Start-up only looks, unless `auto_provision` lets it create what is missing; what differs it never
changes by itself.  `turnline provision` applies the whole plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turnline.config.provisioning import Change
from turnline.errors import ConfigurationError
from turnline.transport.nats.jetstream import ApiError, JetStream
from turnline.transport.nats.topology import Spec, StreamSpec, Topology, Value

FIX = "run `turnline provision`, or apply the manifests it prints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field of an object that is not as wanted."""

    field: str
    wanted: Value
    found: Value


async def plan(api: JetStream, topology: Topology) -> list[Change]:
    """Give what would have to change, in the order in which to do it; empty: all is well."""
    changes = []
    for spec in topology.objects:
        config = await _found(api, spec)
        if config is None:
            changes.append(Change(kind=_kind(spec), name=_name(spec), missing=True, details=()))
            continue
        differences = compare(spec, config)
        if differences:
            details = tuple(
                f"{item.field} is {_shown(item.found)}, wanted {_shown(item.wanted)}"
                for item in differences
            )
            changes.append(
                Change(kind=_kind(spec), name=_name(spec), missing=False, details=details)
            )
    return changes


async def apply(api: JetStream, topology: Topology) -> list[Change]:
    """Create what is missing and update what differs; give what was done.

    Raises:
        ConfigurationError: the server refuses some of it; the rest was done.
    """
    return await _apply(api, topology, missing_only=False)


async def check(api: JetStream, topology: Topology, *, create_missing: bool) -> None:
    """Return if everything is there and as wanted.

    Args:
        create_missing: create what is missing first.

    Raises:
        ConfigurationError: naming every object that is missing or differs, and how to mend it.
    """
    if create_missing:
        await _apply(api, topology, missing_only=True)
    faults = [_fault(change) for change in await plan(api, topology)]
    if faults:
        raise ConfigurationError(faults)


def compare(spec: Spec, config: Mapping[str, Any]) -> list[Difference]:
    """Give the fields of a server's object that are not as wanted."""
    differences = []
    for field, wanted in spec.config.items():
        found = _normal(config.get(field), wanted)
        if found != wanted:
            differences.append(Difference(field=field, wanted=wanted, found=found))
    return differences


async def _apply(api: JetStream, topology: Topology, *, missing_only: bool) -> list[Change]:
    done, faults = [], []
    specs = {_name(spec): spec for spec in topology.objects}
    for change in await plan(api, topology):
        if missing_only and not change.missing:
            continue
        try:
            await _put(api, specs[change.name], create=change.missing)
        except ApiError as error:
            faults.append(
                f"{change.kind} {change.name}: the server refuses it ({error}); "
                "some fields can't change on what exists: drain it, delete it, and run this again"
            )
        else:
            done.append(change)
    if faults:
        raise ConfigurationError(faults)
    return done


async def _put(api: JetStream, spec: Spec, *, create: bool) -> None:
    config = {**spec.config, "name": spec.name}
    if isinstance(spec, StreamSpec):
        verb = "CREATE" if create else "UPDATE"
        await api.call(f"STREAM.{verb}.{spec.name}", config)
        return
    # Without an action: creates what is missing, and so does a second process at the same time.
    asked = {"stream_name": spec.stream, "config": config}
    await api.call(f"CONSUMER.CREATE.{spec.stream}.{spec.name}", asked)


async def _found(api: JetStream, spec: Spec) -> Mapping[str, Any] | None:
    if isinstance(spec, StreamSpec):
        info = await api.stream(spec.name)
    else:
        info = await api.consumer(spec.stream, spec.name)
    return None if info is None else info["config"]


def _normal(found: object, wanted: Value) -> Value:
    """Read a field in the type wanted: the server leaves out what is at its zero value."""
    if isinstance(wanted, tuple):
        return tuple(map(str, found)) if isinstance(found, list) else ()
    if isinstance(found, str | int):
        return found
    return type(wanted)()


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) if len(value) <= 3 else f"{value[0]} … {value[-1]} ({len(value)})"
    return repr(value)


def _kind(spec: Spec) -> str:
    return "stream" if isinstance(spec, StreamSpec) else "consumer"


def _name(spec: Spec) -> str:
    return spec.name if isinstance(spec, StreamSpec) else f"{spec.stream} > {spec.name}"


def _fault(change: Change) -> str:
    if change.missing:
        return f"{change.kind} {change.name} is missing; {FIX}"
    return f"{change.kind} {change.name}: {'; '.join(change.details)}; {FIX}"
