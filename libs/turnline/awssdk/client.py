"""Opens a client of an AWS service, and bounds each call on it.

The client sends a call once.  Whether it may be sent again its caller knows: an answer that was
lost hides an effect that happened.  Credentials are what the AWS environment says (a role, a
profile, variables); they are read and renewed by botocore, and pass through nothing of ours.
"""

from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from turnline.awssdk.errors import FAILURES, sorted_error
from turnline.protocol.deadline import within

if TYPE_CHECKING:
    from types_aiobotocore_apigatewaymanagementapi.client import (
        ApiGatewayManagementApiClient,  # pants: no-infer-dep
    )
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep
    from types_aiobotocore_sqs.client import SQSClient  # pants: no-infer-dep

T = TypeVar("T")
Service = Literal["apigatewaymanagementapi", "dynamodb", "lambda", "sqs"]

_CONNECT_SECONDS = 5.0
# botocore knows the second alone; containers and functions are given the first, as other SDKs read.
_REGION = ("region", ["AWS_REGION", "AWS_DEFAULT_REGION"], None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsOptions:
    """Where AWS is, and how long to wait for it.

    Attributes:
        region: None: what the AWS environment says.
        endpoint_url: of an emulator or a private endpoint; None: AWS's own.
        request_seconds: how long an answer may be silent; `call` bounds the whole.  Of a client
            that polls, longer than its polls.
        max_connections: calls under way at a time; more wait.
    """

    region: str | None = None
    endpoint_url: str | None = None
    request_seconds: float = 10.0
    max_connections: int = 64


@overload
def open_client(
    service: Literal["sqs"], options: AwsOptions
) -> "AbstractAsyncContextManager[SQSClient]": ...
@overload
def open_client(
    service: Literal["dynamodb"], options: AwsOptions
) -> "AbstractAsyncContextManager[DynamoDBClient]": ...
@overload
def open_client(
    service: Literal["apigatewaymanagementapi"], options: AwsOptions
) -> "AbstractAsyncContextManager[ApiGatewayManagementApiClient]": ...
@overload
def open_client(
    service: Literal["lambda"], options: AwsOptions
) -> AbstractAsyncContextManager[Any]: ...
def open_client(service: Service, options: AwsOptions) -> AbstractAsyncContextManager[Any]:
    """Open a client of one service; nothing is sent yet.

    Raises:
        AwsError: on entering: no region, or a broken AWS configuration file.
    """
    return _opened(service, options)


@asynccontextmanager
async def _opened(service: Service, options: AwsOptions) -> AsyncIterator[Any]:
    config = AioConfig(
        connect_timeout=min(_CONNECT_SECONDS, options.request_seconds),
        read_timeout=options.request_seconds,
        max_pool_connections=options.max_connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
        # The models are large files: read by a thread, not by the loop.
        warm_up_loader_caches=True,
    )
    try:
        opening = get_session({"region": _REGION}).create_client(
            service,
            region_name=options.region,
            endpoint_url=options.endpoint_url,
            config=config,
        )
        client = await opening.__aenter__()
    except FAILURES as error:
        raise sorted_error(error) from error
    try:
        yield client
    finally:
        await opening.__aexit__(None, None, None)


async def call(work: Coroutine[Any, Any, T], *, seconds: float) -> T:
    """Await one call on a client for at most `seconds`, its wait for a connection included.

    Raises:
        AwsError: it failed, or gave no answer in time.
    """
    try:
        return await within(seconds, work)
    except FAILURES as error:
        raise sorted_error(error) from error
