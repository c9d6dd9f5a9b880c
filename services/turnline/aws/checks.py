"""The settings of an AWS entry point, checked with everything that is wrong listed at once.

Without queues (`execution.queues.type: in_memory`, the default) the entry points that callers reach
run agents themselves, the guide's direct mode; all others need SQS.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from pydantic import SecretStr

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator, configured_validator
from turnline.config import Settings, Topology
from turnline.errors import ConfigurationError
from turnline.hosting import check_and_prepare, start

T = TypeVar("T")

WEBSOCKET_MODES = ("async", "stream")


def read_settings_for(
    part: Topology,
    prepare: Callable[[Settings], T],
    *,
    more: Callable[[Settings], Iterator[str]] = lambda _: iter(()),
    direct: AgentRegistry | None = None,
) -> tuple[Settings, T]:
    """Read the settings, check them for a part of the pipeline on AWS, and prepare something.

    Args:
        more: faults of this entry point's own.
        direct: what it runs where there are no queues; None: it needs queues.

    Raises:
        ConfigurationError: lists every fault.
    """
    settings = start()
    asked = _with_push_token(settings)
    if direct is not None and is_direct(settings):
        own = [*_direct_faults(settings, direct), *more(settings)]
    else:
        own = [*_sqs_faults(settings), *more(settings)]

    def prepared(_: Settings) -> T:
        try:
            made = prepare(settings)
        except ConfigurationError as error:
            raise ConfigurationError([*own, *error.faults]) from error
        if own:
            raise ConfigurationError(own)
        return made

    return settings, check_and_prepare(asked, part_of(settings, part), prepared)


def is_direct(settings: Settings) -> bool:
    """Whether the process that takes requests or frames runs the agent, with no queue between."""
    return settings.execution.queues.type == "in_memory"


def part_of(settings: Settings, part: Topology) -> Topology:
    """Give what a process is: all of the pipeline in direct mode, else `part`."""
    return Topology.SINGLE_PROCESS if is_direct(settings) else part


def validator_of(given: AuthValidator | None) -> Callable[[Settings], AuthValidator | None]:
    """Give what picks the validator once the settings are known."""
    return lambda settings: configured_validator(settings.auth, given=given)


def _sqs_faults(settings: Settings) -> Iterator[str]:
    kind = settings.execution.queues.type
    if kind != "sqs":
        yield (
            f"execution.queues.type: is {kind}, but the AWS entry points work over SQS; set sqs, "
            "or use turnline.pipeline"
        )


def _direct_faults(settings: Settings, agents: AgentRegistry) -> Iterator[str]:
    """List what the next request would miss: API Gateway may bring it to any process."""
    kept = {
        "execution.response_store.type": settings.execution.response_store.type,
        "session.type": settings.session.type,
    }
    for setting, kind in kept.items():
        if kind == "in_memory":
            yield (
                f"{setting}: is in_memory, but API Gateway brings the requests of one caller to "
                "any process; use dynamodb, valkey or redis"
            )
    sockets = settings.session.connection_store.table_name
    named = sockets or settings.websocket_api.connection_table
    if _pushes(settings) and settings.session.type == "dynamodb" and not named:
        yield (
            "session.connection_store.table_name: is not set, but dynamodb sessions keep client "
            "sockets in a table of their own; name the existing connections table"
        )
    if not agents.names():
        yield (
            "execution.queues.type: is in_memory, so this process runs the agents, but none is "
            "registered; register them before, or set sqs and run them elsewhere"
        )


def _pushes(settings: Settings) -> bool:
    return settings.execution.mode in WEBSOCKET_MODES


def _with_push_token(settings: Settings) -> Settings:
    """Give the settings as if pods pushed to each other: here API Gateway holds the sockets, and
    IAM says who may write to them."""
    sockets = settings.websocket_api
    if sockets.push_auth_token is not None:
        return settings
    token = SecretStr("no pod pushes to another")
    return settings.model_copy(
        update={"websocket_api": sockets.model_copy(update={"push_auth_token": token})}
    )
