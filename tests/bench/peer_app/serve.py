"""The bench agent on the peer; needs CPython 3.12 and `agentkernel`, so it stays out of the build."""

import asyncio
import os
import uuid
from typing import Any

from agentkernel.auth import AuthValidator, ValidationResult
from agentkernel.core import Agent, Module, Runner
from agentkernel.core.event import MessageEnd, MessageStart, TextDelta
from agentkernel.core.model import AgentReplyText, AgentRequestText
from agentkernel.pipeline import AgentRunner, IOHandler

DIRECTIVES = ("sleep", "chunks", "gap", "size")


def read(requests: list[Any]) -> tuple[str, dict[str, float]]:
    """Give the prompt and its directives."""
    prompt = "".join(part.prompt for part in requests if isinstance(part, AgentRequestText))
    words = (word.partition("=") for word in prompt.split())
    return prompt, {name: float(value) for name, _, value in words if name in DIRECTIVES}


class EchoRunner(Runner):
    """Sleeps, then says `chunks` pieces with `gap` seconds between."""

    def __init__(self) -> None:
        super().__init__("echo")

    async def run(self, agent: Any, session: Any, requests: list[Any]) -> Any:
        prompt, wanted = read(requests)
        await asyncio.sleep(wanted.get("sleep", 0))
        return AgentReplyText(prompt=prompt, response="x" * int(wanted.get("size", 6)))

    async def stream(self, agent: Any, session: Any, requests: list[Any]) -> Any:
        _, wanted = read(requests)
        await asyncio.sleep(wanted.get("sleep", 0))
        message = uuid.uuid4().hex
        yield MessageStart(message_id=message)
        for _ in range(int(wanted.get("chunks", 1))):
            yield TextDelta(message_id=message, content="token ")
            if "gap" in wanted:
                await asyncio.sleep(wanted["gap"])
        yield MessageEnd(message_id=message)


class EchoAgent(Agent):
    def get_description(self) -> str:
        return "echo"

    def override_system_prompt(self, prompt: str) -> None: ...

    def attach_tool(self, tool: Any) -> None: ...

    def get_a2a_card(self) -> None: ...


class EchoModule(Module):
    def __init__(self) -> None:
        super().__init__()
        self._runner = EchoRunner()
        self.load(["echo"])

    def _wrap(self, agent: str, agents: Any) -> Agent:
        return EchoAgent(agent, self._runner)

    def load(self, agents: list[str]) -> Any:
        return super().load(agents)


class AnyUser(AuthValidator):
    def validate(self, token: str, context: Any = None) -> ValidationResult:
        return ValidationResult(is_valid=True, claims={"userId": token.removeprefix("user-")})


if __name__ == "__main__":
    EchoModule()
    if os.environ.get("BENCH_ROLE") == "runner":
        AgentRunner.run()
    elif os.environ.get("BENCH_SOCKETS") == "1":
        IOHandler.run(auth_validator=AnyUser())
    else:
        IOHandler.run()
