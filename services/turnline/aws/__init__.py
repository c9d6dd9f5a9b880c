"""The guide's entry points on AWS: Lambda functions and ECS processes over the same services.

Each class is loaded when it is first named, so that a function's cold start loads no other's parts.
"""

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnline.aws.agent_runner import ServerlessAgentRunner, ServerlessStreamAgentRunner
    from turnline.aws.authorizer import APIGatewayAuthorizer
    from turnline.aws.ecs import (
        AWSRestAPI,
        AWSWebsocketAPI,
        ECSAgentRunner,
        ECSIOHandler,
        ECSOutputConsumer,
        ECSStreamAgentRunner,
    )
    from turnline.aws.request_handler import Lambda
    from turnline.aws.response_handler import ResponseHandler
    from turnline.aws.websocket_handler import WebsocketConnectionHandler

__all__ = [
    "APIGatewayAuthorizer",
    "AWSRestAPI",
    "AWSWebsocketAPI",
    "ECSAgentRunner",
    "ECSIOHandler",
    "ECSOutputConsumer",
    "ECSStreamAgentRunner",
    "Lambda",
    "ResponseHandler",
    "ServerlessAgentRunner",
    "ServerlessStreamAgentRunner",
    "WebsocketConnectionHandler",
]

_LOADED_BY_NAME = MappingProxyType(
    {
        "APIGatewayAuthorizer": "turnline.aws.authorizer",
        "AWSRestAPI": "turnline.aws.ecs",
        "AWSWebsocketAPI": "turnline.aws.ecs",
        "ECSAgentRunner": "turnline.aws.ecs",
        "ECSIOHandler": "turnline.aws.ecs",
        "ECSOutputConsumer": "turnline.aws.ecs",
        "ECSStreamAgentRunner": "turnline.aws.ecs",
        "Lambda": "turnline.aws.request_handler",
        "ResponseHandler": "turnline.aws.response_handler",
        "ServerlessAgentRunner": "turnline.aws.agent_runner",
        "ServerlessStreamAgentRunner": "turnline.aws.agent_runner",
        "WebsocketConnectionHandler": "turnline.aws.websocket_handler",
    }
)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class of any of these modules
    if name not in _LOADED_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LOADED_BY_NAME[name]), name)
