"""The settings of an AWS entry point, checked with everything that is wrong listed at once."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from pydantic import SecretStr

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
) -> tuple[Settings, T]:
    """Read the settings, check them for a part of the pipeline on AWS, and prepare something.

    Args:
        more: faults of this entry point's own.

    Raises:
        ConfigurationError: lists every fault.
    """
    settings = start()
    asked = _with_push_token(settings)
    own = [*_sqs_faults(settings), *more(settings)]

    def prepared(_: Settings) -> T:
        try:
            made = prepare(settings)
        except ConfigurationError as error:
            raise ConfigurationError([*own, *error.faults]) from error
        if own:
            raise ConfigurationError(own)
        return made

    return settings, check_and_prepare(asked, part, prepared)


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


def without_inbox(settings: Settings) -> Settings:
    """Give the settings with the inbox off: nothing here could bring held frames to a socket.

    API Gateway takes no frame for a socket that is still connecting, so an answer that reaches
    nobody is tried again and then given up, as in the guide.
    """
    sockets = settings.websocket_api.model_copy(update={"inbox": False})
    return settings.model_copy(update={"websocket_api": sockets})
