"""The tree of all settings.  The guide's keys keep the guide's names and defaults."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from turnline.config.auth import Auth
from turnline.config.block import DAY, Block
from turnline.config.queues import Queues
from turnline.config.stores import ResponseStore, Session
from turnline.config.surfaces import Api, Logging, Telemetry, WebsocketApi

ExecutionMode = Literal["rest_sync", "rest_async", "stream", "async"]


# dynamodb is not: answers need a table of their own there, which only its owner can name.
_FOLLOWED = ("redis", "valkey")


def _undeclared_queues() -> Queues:
    return Queues(type="in_memory")


def _undeclared_response_store() -> ResponseStore:
    return ResponseStore(retry_count=60, delay=1)


class Execution(Block):
    """`execution`: how turns are asked, queued, run and answered."""

    mode: ExecutionMode = Field(
        default="rest_sync",
        description="How answers reach callers.  rest_sync: same HTTP response; rest_async: a "
        "later GET; stream: chunks; async: WebSocket frames.  Default rest_sync: the guide's.",
    )
    turn_timeout: float = Field(
        default=600,
        ge=0.05,
        le=DAY,
        description="Seconds a turn may take from admission to answer, retries included; then its "
        "caller gets a failure.  Default 600: long tool-using turns finish.",
    )
    max_concurrency: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="Turns at once in one runner.  Default 100: turns mostly wait for models.",
    )
    drain_grace: float = Field(
        default=25,
        ge=0,
        le=3600,
        description="Seconds after SIGTERM for work to finish; the rest is handed back.  0: hand "
        "back at once.  Default 25: below the 30 s after which orchestrators kill.",
    )
    sync_agent_threads: int = Field(
        default=32,
        ge=1,
        le=1024,
        description="Threads for agents that are plain functions; more of them wait.  Default 32: "
        "the guide's consumers with room to spare.",
    )
    queues: Queues = Field(default_factory=_undeclared_queues, description="Transport and queues.")
    response_store: ResponseStore = Field(
        default_factory=_undeclared_response_store,
        description="Where answers wait.  Unset: on a broker with redis or valkey sessions, on "
        "their server; in memory otherwise.",
    )

    @field_validator("mode", mode="before")
    @classmethod
    def _supported(cls, value: object) -> object:
        if value == "realtime":
            raise ValueError("realtime is not supported; use stream or async")
        return value


class Settings(Block):
    """All settings of a process, checked and frozen."""

    execution: Execution = Field(default_factory=Execution, description="Running turns.")
    session: Session = Field(default_factory=Session, description="Sessions.")
    websocket_api: WebsocketApi = Field(default_factory=WebsocketApi, description="Client sockets.")
    api: Api = Field(default_factory=Api, description="HTTP server.")
    auth: Auth = Field(default_factory=Auth, description="Tokens of callers.")
    logging: Logging = Field(default_factory=Logging, description="Logs.")
    telemetry: Telemetry = Field(default_factory=Telemetry, description="Metrics and traces.")

    @model_validator(mode="before")
    @classmethod
    def _answers_follow_sessions(cls, given: object) -> object:
        """Keep answers where sessions are, where processes share them and nothing else is said."""
        if not isinstance(given, Mapping):
            return given
        execution, session = given.get("execution"), given.get("session")
        if not isinstance(execution, Mapping) or not isinstance(session, Mapping):
            return given
        undeclared = execution.get("response_store") is None
        if not (undeclared and _is_on_a_broker(execution)) or session.get("type") not in _FOLLOWED:
            return given
        return {**given, "execution": {**execution, "response_store": _beside(session)}}


def _is_on_a_broker(execution: Mapping[str, Any]) -> bool:
    queues = execution.get("queues")
    return isinstance(queues, Mapping) and queues.get("type") not in (None, "in_memory")


def _beside(session: Mapping[str, Any]) -> dict[str, Any]:
    """Make the response store of a session block: the same server, the wait of no block."""
    store: dict[str, Any] = {"type": session["type"], "retry_count": 60, "delay": 1}
    server = session.get(session["type"])
    if isinstance(server, Mapping) and "url" in server:
        store[session["type"]] = {"url": server["url"]}
    return store
