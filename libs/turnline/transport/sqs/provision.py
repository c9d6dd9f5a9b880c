"""Compares the queues wanted with those on SQS; creates and updates them on demand.

Start-up only looks, and refuses what would break a promise: a queue that is missing or not FIFO,
one without a place for dead letters, one that gives a message up before its caller is answered.
How else a queue is set is its owner's business.  `turnline provision` applies the whole plan.
"""

import json
from collections.abc import Mapping, Sequence

from turnline.awssdk import AwsError, AwsFault, refusal
from turnline.config.provisioning import Change
from turnline.errors import ConfigurationError
from turnline.telemetry import get_logger
from turnline.transport.sqs.api import SqsApi, port_error
from turnline.transport.sqs.facts import QueueFacts
from turnline.transport.sqs.options import MOST_BYTES, QueueOptions, SqsOptions
from turnline.transport.sqs.topology import REDRIVE, dead_url_of, dead_wanted, work_wanted

_log = get_logger("transport")

FIX = "run `turnline provision`, or apply the template it prints"
KIND = "queue"
_FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException"})


async def check(api: SqsApi, options: SqsOptions) -> dict[str, QueueFacts]:
    """Give what is known of every queue of this process, by its name.

    Raises:
        ConfigurationError: naming every queue that is missing or does not do, and how to mend it.
        TransportUnavailableError: SQS does not answer.
    """
    facts: dict[str, QueueFacts] = {}
    faults: list[str] = []
    for queue in options.queues:
        try:
            facts[queue.name] = await _check(api, queue)
        except ConfigurationError as error:
            faults.extend(error.faults)
    if faults:
        raise ConfigurationError(faults)
    return facts


async def plan(api: SqsApi, options: SqsOptions) -> list[Change]:
    """Give what would have to change, in the order in which to do it; empty: all is well.

    Raises:
        ConfigurationError: SQS does not let this process look.
        TransportUnavailableError: SQS does not answer.
    """
    changes = []
    for queue in options.queues:
        found = await _look(api, queue, queue.url)
        dead_url = dead_url_of(queue, found or {})
        dead = await _look(api, queue, dead_url)
        arn = (dead or {}).get("QueueArn", "")
        for url, has, wanted in (
            (dead_url, dead, dead_wanted()),
            (queue.url, found, work_wanted(queue, arn)),
        ):
            change = _change(url, has, wanted)
            if change is not None:
                changes.append(change)
    return changes


async def apply(api: SqsApi, options: SqsOptions) -> list[Change]:
    """Create what is missing and update what differs; give what was done.

    Raises:
        ConfigurationError: SQS refuses some of it; the rest was done.
    """
    done: list[Change] = []
    faults: list[str] = []
    planned = {change.name: change for change in await plan(api, options)}
    for queue in options.queues:
        try:
            done.extend(await _apply(api, queue, planned))
        except AwsError as error:
            if error.passes:
                raise port_error(error) from error
            setting = f"execution.queues.{queue.name}.url"
            faults.extend(refusal(error, doing="make the queue", setting=setting).faults)
    if faults:
        raise ConfigurationError(faults)
    return done


async def _apply(
    api: SqsApi, queue: QueueOptions, planned: Mapping[str, Change]
) -> Sequence[Change]:
    found = await _look(api, queue, queue.url)
    dead_url = dead_url_of(queue, found or {})
    done = []
    dead = planned.get(_name(dead_url))
    if dead is not None:
        await _put(api, dead_url, dead_wanted(), missing=dead.missing)
        done.append(dead)
    arn = (await api.attributes(dead_url))["QueueArn"]
    work = planned.get(queue.queue_name)
    if work is not None:
        await _put(api, queue.url, work_wanted(queue, arn), missing=work.missing)
        done.append(work)
    return done


async def _put(api: SqsApi, url: str, wanted: Mapping[str, str], *, missing: bool) -> None:
    if missing:
        await api.create(_name(url), wanted)
        return
    differing = _differing(await api.attributes(url), wanted)
    await api.configure(url, {name: wanted[name] for name in differing})


def _differing(found: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    return [name for name, value in wanted.items() if not _is_met(name, found, value)]


def _change(url: str, found: Mapping[str, str] | None, wanted: Mapping[str, str]) -> Change | None:
    if found is None:
        return Change(kind=KIND, name=_name(url), missing=True, details=())
    details = tuple(
        f"{name} is {found.get(name, 'not set')}, wanted {wanted[name]}"
        for name in _differing(found, wanted)
    )
    return Change(kind=KIND, name=_name(url), missing=False, details=details) if details else None


def _is_met(name: str, found: Mapping[str, str], wanted: str) -> bool:
    if name == REDRIVE:
        has, asked = _redrive(found), json.loads(wanted)
        return has["deadLetterTargetArn"] == asked["deadLetterTargetArn"] and int(
            has["maxReceiveCount"]
        ) >= int(asked["maxReceiveCount"])
    # An emulator does not tell all that it was told.
    return found.get(name, wanted) == wanted


async def _check(api: SqsApi, queue: QueueOptions) -> QueueFacts:
    setting = f"execution.queues.{queue.name}.url"
    try:
        found = await api.attributes(queue.url)
    except AwsError as error:
        return _unread(error, queue, setting)
    if found.get("FifoQueue") != "true":
        raise ConfigurationError(
            [f"{setting}: {queue.queue_name} is no FIFO queue; turns need one to keep their order"]
        )
    policy = _redrive(found)
    ceiling = int(policy["maxReceiveCount"])
    if not ceiling:
        raise ConfigurationError(
            [f"{setting}: {queue.queue_name} has no redrive policy, so no dead letters; {FIX}"]
        )
    if ceiling <= queue.max_receive_count:
        raise ConfigurationError(
            [
                f"execution.queues.{queue.name}.max_receive_count: is {queue.max_receive_count}, "
                f"and the redrive policy of {queue.queue_name} gives up after {ceiling}, before "
                "the caller is answered; set maxReceiveCount of the policy to "
                f"{queue.max_receive_count + 1} or more, or max_receive_count below {ceiling}"
            ]
        )
    dead_url = dead_url_of(queue, found)
    await _check_dead(api, dead_url, setting)
    return QueueFacts(
        dead_url=dead_url,
        ceiling=ceiling,
        largest=int(found.get("MaximumMessageSize", str(MOST_BYTES))),
    )


async def _check_dead(api: SqsApi, url: str, setting: str) -> None:
    try:
        await api.attributes(url)
    except AwsError as error:
        if error.passes:
            raise port_error(error) from error
        if error.fault is AwsFault.MISSING:
            raise ConfigurationError(
                [f"{setting}: {KIND} {_name(url)} for its dead letters is missing; {FIX}"]
            ) from error


def _unread(error: AwsError, queue: QueueOptions, setting: str) -> QueueFacts:
    """Go on without the numbers where only their reading is forbidden."""
    if error.passes:
        raise port_error(error) from error
    if error.fault is AwsFault.MISSING:
        raise ConfigurationError(
            [f"{setting}: {KIND} {queue.queue_name} is missing; {FIX}"]
        ) from error
    if error.code not in _FORBIDDEN:
        raise refusal(error, doing="read the queue's attributes", setting=setting) from error
    _log.warning(
        "config.warning",
        setting=setting,
        reason="this process may not read the queue's attributes, so its redrive policy is not "
        "checked and execution.queues.sqs.max_messages not kept; allow sqs:GetQueueAttributes",
    )
    return QueueFacts(dead_url=dead_url_of(queue, {}), counted=False)


async def _look(api: SqsApi, queue: QueueOptions, url: str) -> dict[str, str] | None:
    try:
        return await api.attributes(url)
    except AwsError as error:
        if error.fault is AwsFault.MISSING:
            return None
        if error.passes:
            raise port_error(error) from error
        setting = f"execution.queues.{queue.name}.url"
        raise refusal(error, doing="read the queue's attributes", setting=setting) from error


def _redrive(found: Mapping[str, str]) -> dict[str, str]:
    policy = json.loads(found.get(REDRIVE, "{}"))
    return {
        "deadLetterTargetArn": str(policy.get("deadLetterTargetArn", "")),
        "maxReceiveCount": str(policy.get("maxReceiveCount", 0)),
    }


def _name(url: str) -> str:
    return url.rpartition("/")[2]
