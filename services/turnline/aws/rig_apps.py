"""For this room's tests: the files of an application, as they stand in a function's package."""

from types import MappingProxyType

AGENTS = '''
"""Agents that note their starts, and do what their prompt says."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

from turnline.agent import Turn, agent

STARTS = Path(__file__).with_name("starts")


@agent("tester")
async def tester(turn: Turn) -> AsyncIterator[str]:
    with STARTS.open("a") as starts:
        starts.write(f"{turn.prompt}\\n")
    what, _, rest = turn.prompt.partition(" ")
    if what == "fail":
        raise RuntimeError("not this time")
    if what == "recover" and turn.attempt < 2:
        raise RuntimeError("not this time")
    if what == "stall" and turn.attempt < 2:
        await asyncio.sleep(3600)
    while what == "meet" and len(STARTS.read_text().splitlines()) < int(rest):
        await asyncio.sleep(0.05)
    if what == "count":
        yield f"{len(turn.history) + 1} of {turn.user_id} {turn.scheduled_task_id}"
        return
    for word in (rest or what).split():
        yield f"{word} "


@agent("blocker")
def blocker(turn: Turn) -> str:
    if turn.attempt < 2:
        time.sleep(3600)
    return "then answer "
'''

VALIDATOR = '''
"""Takes tokens that begin with `user-`, each its own user."""

from turnline.auth import AuthValidator, ValidationResult


class Tokens(AuthValidator):
    def validate(self, token, context=None):
        return ValidationResult(token.startswith("user-"), {"userId": token, "tags": ["x"]})
'''

APPS = MappingProxyType(
    {
        "agents": AGENTS,
        "tokens": VALIDATOR,
        "app_agent_runner": (
            "import agents\n"
            "from turnline.aws import ServerlessAgentRunner\n\n"
            "handler = ServerlessAgentRunner.handle\n"
        ),
        "app_stream_runner": (
            "import agents\n"
            "from turnline.aws import ServerlessStreamAgentRunner\n\n"
            "handler = ServerlessStreamAgentRunner.handle\n"
        ),
        "app_request_handler": (
            "from turnline.aws import Lambda\n\n\n"
            "@Lambda.register('/app', method='GET')\n"
            "def app(event, context):\n"
            "    return {'path': event['rawPath']}\n\n\n"
            "handler = Lambda.handler\n"
        ),
        "app_response_handler": (
            "from turnline.aws import ResponseHandler\n\nhandler = ResponseHandler.handle\n"
        ),
        "app_ws_connection_handler": (
            "from tokens import Tokens\n"
            "from turnline.aws import WebsocketConnectionHandler\n\n\n"
            "@WebsocketConnectionHandler.register('status')\n"
            "def status(msg):\n"
            "    return {'up': True, 'who': msg['user_id']}\n\n\n"
            "handler = WebsocketConnectionHandler.set_auth_validator(Tokens()).handler\n"
        ),
        "ecs_io": (
            "from tokens import Tokens\n"
            "from turnline.aws import AWSRestAPI, AWSWebsocketAPI, ECSIOHandler\n\n\n"
            "@AWSRestAPI.register('/app')\n"
            "def app(event, context):\n"
            "    return {'path': event['rawPath']}\n\n\n"
            "@AWSWebsocketAPI.register('status')\n"
            "async def status(msg):\n"
            "    return {'up': True, 'who': msg['user_id']}\n\n\n"
            "if __name__ == '__main__':\n"
            "    ECSIOHandler.run(auth_validator=Tokens())\n"
        ),
        "ecs_runner": (
            "import agents\n"
            "from turnline.aws import ECSAgentRunner\n\n"
            "if __name__ == '__main__':\n"
            "    ECSAgentRunner.run()\n"
        ),
        "ecs_output": (
            "from turnline.aws import ECSOutputConsumer\n\n"
            "if __name__ == '__main__':\n"
            "    ECSOutputConsumer.run()\n"
        ),
        "ecs_sockets": (
            "from turnline.aws import AWSWebsocketAPI\n\n"
            "if __name__ == '__main__':\n"
            "    AWSWebsocketAPI.run()\n"
        ),
        "ecs_rest": (
            "from turnline.aws import AWSRestAPI\n\n"
            "if __name__ == '__main__':\n"
            "    AWSRestAPI.run()\n"
        ),
        "ecs_direct": (
            "import agents\n"
            "from tokens import Tokens\n"
            "from turnline.aws import AWSWebsocketAPI\n\n\n"
            "@AWSWebsocketAPI.register('status')\n"
            "async def status(msg):\n"
            "    return {'up': True, 'who': msg['user_id']}\n\n\n"
            "if __name__ == '__main__':\n"
            "    AWSWebsocketAPI.run(auth_validator=Tokens())\n"
        ),
        "app_ws_direct": (
            "import agents\n"
            "from tokens import Tokens\n"
            "from turnline.aws import WebsocketConnectionHandler\n\n\n"
            "@WebsocketConnectionHandler.register('status')\n"
            "def status(msg):\n"
            "    return {'up': True, 'who': msg['user_id']}\n\n\n"
            "handler = WebsocketConnectionHandler.set_auth_validator(Tokens()).handler\n"
        ),
        "app_rest_direct": (
            "import agents\n"
            "from turnline.aws import Lambda\n\n\n"
            "@Lambda.register('/app', method='GET')\n"
            "def app(event, context):\n"
            "    return {'path': event['rawPath']}\n\n\n"
            "handler = Lambda.handler\n"
        ),
        "ecs_rest_direct": (
            "import agents\n"
            "from tokens import Tokens\n"
            "from turnline.aws import AWSRestAPI\n\n\n"
            "@AWSRestAPI.register('/app/{name}', method='PUT')\n"
            "async def app(event, context):\n"
            "    return {'event': event}\n\n\n"
            "if __name__ == '__main__':\n"
            "    AWSRestAPI.run(auth_validator=Tokens())\n"
        ),
        "app_ws_authorizer": (
            "from tokens import Tokens\n"
            "from turnline.aws import APIGatewayAuthorizer\n\n"
            "handler = APIGatewayAuthorizer(validator=Tokens()).handle\n"
        ),
    }
)
