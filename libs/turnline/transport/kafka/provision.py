"""Compares the topics wanted with those on the brokers; creates and updates them on demand.

Start-up only looks, and only for topics that are missing: how a topic is set is its owner's
business.  `turnline provision` applies the whole plan.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from confluent_kafka.admin import NewTopic

from turnline.config.provisioning import Change
from turnline.errors import ConfigurationError, TransportUnavailableError
from turnline.transport.kafka.admin import Admin
from turnline.transport.kafka.errors import unavailable
from turnline.transport.kafka.topology import TopicSpec

FIX = "run `turnline provision`, or apply the manifests it prints"
KIND = "topic"
_LOOK_AGAIN_SECONDS = 0.05


async def plan(admin: Admin, topology: Sequence[TopicSpec], *, seconds: float) -> list[Change]:
    """Give what would have to change, in the order in which to do it; empty: all is well."""
    found = await admin.topics(seconds)
    changes = []
    for spec in topology:
        if spec.name not in found:
            changes.append(Change(kind=KIND, name=spec.name, missing=True, details=()))
            continue
        details = _differences(spec, found[spec.name], await admin.configs(spec.name))
        if details:
            changes.append(Change(kind=KIND, name=spec.name, missing=False, details=details))
    return changes


async def apply(admin: Admin, topology: Sequence[TopicSpec], *, seconds: float) -> list[Change]:
    """Create what is missing and update what differs; give what was done.

    Returns once brokers tell of every topic, so that whoever starts next finds them.

    Raises:
        ConfigurationError: the brokers refuse some of it; the rest was done.
        TransportUnavailableError: they did not tell of it in time.
    """
    done, faults = [], []
    specs = {spec.name: spec for spec in topology}
    for change in await plan(admin, topology, seconds=seconds):
        try:
            await _put(admin, specs[change.name], missing=change.missing, seconds=seconds)
        except TransportUnavailableError as error:
            faults.append(f"{KIND} {change.name}: the brokers refuse it ({error.message})")
        else:
            done.append(change)
    if faults:
        raise ConfigurationError(faults)
    await _told_of(admin, specs.keys(), seconds)
    return done


async def _told_of(admin: Admin, names: Collection[str], seconds: float) -> None:
    """Wait until brokers tell of topics that were just made: they learn of them one by one."""
    wanted = set(names)
    try:
        async with asyncio.timeout(seconds):
            while not wanted <= (await admin.topics(seconds)).keys():  # noqa: ASYNC110 - theirs
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    except TimeoutError as error:
        raise unavailable(None, "does not tell of topics that were made") from error


def check(found: Mapping[str, int], topology: Sequence[TopicSpec]) -> None:
    """Return if every topic is there.

    Args:
        found: the topics there are.

    Raises:
        ConfigurationError: naming every topic that is missing, and how to mend it.
    """
    faults = [
        f"{KIND} {spec.name} is missing; {FIX}" for spec in topology if spec.name not in found
    ]
    if faults:
        raise ConfigurationError(faults)


def check_policies(policies: Mapping[str, str]) -> None:
    """Return if no topic of a queue is compacted.

    Args:
        policies: the `cleanup.policy` of each.

    Raises:
        ConfigurationError: naming every one that is.
    """
    faults = [
        f"{KIND} {name}: cleanup.policy is {policy!r}, so brokers drop all messages of a session "
        f"but the last; set it to 'delete', or {FIX}"
        for name, policy in policies.items()
        if "compact" in policy
    ]
    if faults:
        raise ConfigurationError(faults)


async def _put(admin: Admin, spec: TopicSpec, *, missing: bool, seconds: float) -> None:
    if missing:
        await admin.create(
            NewTopic(
                spec.name,
                num_partitions=spec.partitions,
                replication_factor=spec.replicas,
                config=dict(spec.config),
            )
        )
        return
    partitions = (await admin.topics(seconds))[spec.name]
    if partitions < spec.partitions:
        await admin.grow(spec.name, spec.partitions)
    differing = _configs_that_differ(spec, await admin.configs(spec.name))
    if differing:
        await admin.configure(spec.name, {name: spec.config[name] for name in differing})


def _differences(spec: TopicSpec, partitions: int, configs: Mapping[str, str]) -> tuple[str, ...]:
    details = []
    if partitions < spec.partitions:
        details.append(
            f"partitions is {partitions}, wanted {spec.partitions} "
            "(more partitions move sessions: let the topic run empty first)"
        )
    details += [
        f"{name} is {configs.get(name, '')!r}, wanted {spec.config[name]!r}"
        for name in _configs_that_differ(spec, configs)
    ]
    return tuple(details)


def _configs_that_differ(spec: TopicSpec, configs: Mapping[str, str]) -> list[str]:
    return [name for name, wanted in spec.config.items() if configs.get(name) != wanted]
