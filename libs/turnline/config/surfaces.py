"""`api`, `websocket_api`, `logging` and `telemetry`: what clients and operators meet."""

from typing import Literal

from pydantic import Field, field_validator

from turnline.config.block import MIB, Block, HttpUrl, Token

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LogFormat = Literal["auto", "json", "console"]


class WebsocketApi(Block):
    """`websocket_api`: client sockets, and pushes between pods."""

    endpoint_url: HttpUrl | None = Field(
        default=None,
        description="Management endpoint of an API Gateway; AWS entry points only.  Unset: none.",
    )
    chat_route: str = Field(
        default="chat",
        min_length=1,
        max_length=128,
        description="Route of chat frames, also the default.",
    )
    connection_table: str | None = Field(
        default=None,
        min_length=3,
        max_length=255,
        description="Connections table; AWS entry points only.  Unset: none.",
    )
    push_auth_token: Token | None = Field(
        default=None,
        description="Secret all pods share; authenticates pushes between them.  At least 16 "
        "characters.  Unset: the push endpoint is disabled.",
    )
    push_port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="Port at which other pods reach this one's push endpoint; no effect on "
        "in_memory, where there are none.  Unset: api.port.",
    )
    push_grpc_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="Port of gRPC pushes; push endpoint service only.  0: any free one.  Unset: "
        "no gRPC.",
    )
    push_grpc_certificate_file: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="PEM file of the certificate gRPC is served with, and of those that vouch for "
        "it.  Unset: no TLS.",
    )
    push_grpc_private_key_file: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="PEM file of the key of that certificate, without a passphrase.  Unset: no "
        "TLS.",
    )
    ping_interval: float = Field(
        default=20,
        ge=0.1,
        le=3600,
        description="Seconds between pings to a client.  Default 20: below the 60 s after which "
        "load balancers drop idle connections.",
    )
    ping_timeout: float = Field(
        default=20,
        ge=0.1,
        le=3600,
        description="Seconds to wait for the answer to a ping before the socket is closed.  "
        "Default 20: a phone changing networks manages.",
    )
    max_connections_per_user: int = Field(
        default=20,
        ge=1,
        le=100_000,
        description="Sockets one user may hold on one pod.  Default 20: many tabs and devices.",
    )
    send_buffer: int = Field(
        default=256,
        ge=1,
        le=1_000_000,
        description="Frames buffered for a client that reads slowly; more closes its socket.  "
        "Default 256: several seconds of streamed text.",
    )
    inbox: bool = Field(
        default=True,
        description="Hold an answer that reaches no socket for its user's next one.  off: try "
        "again up to max_receive_count of the output queue, then give it up as a dead letter with "
        "an error in the log (the guide's).  Default on: nobody loses an answer by reconnecting.",
    )
    max_frame_bytes: int = Field(
        default=131_072,
        ge=1024,
        le=64 * MIB,
        description="Bytes of the largest frame taken from a client.  Default 128 KiB: as at API "
        "Gateway.",
    )


class EnabledRoutes(Block):
    """`api.enabled_routes`."""

    agents: bool = Field(
        default=True, description="Serve GET /api/v1/agents.  Default true: the guide's."
    )


class Api(Block):
    """`api`: the HTTP server, and the gRPC one beside it."""

    host: str = Field(
        default="0.0.0.0",
        min_length=1,
        description="Address to listen on.  Default 0.0.0.0: all, as a container needs.",
    )
    port: int = Field(
        default=8000,
        ge=0,
        le=65_535,
        description="Port to listen on.  0: any free one.  Default 8000: the guide's.",
    )
    grpc_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="Port of clients' gRPC: chat at the request handler, the IO side and the "
        "single process, connections at the gateway and the single process.  0: any free one.  "
        "Unset: no gRPC.",
    )
    grpc_certificate_file: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="PEM file of the certificate gRPC is served with, and of those that vouch for "
        "it.  Unset: no TLS.",
    )
    grpc_private_key_file: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="PEM file of the key of that certificate, without a passphrase.  Unset: no "
        "TLS.",
    )
    enabled_routes: EnabledRoutes = Field(
        default_factory=EnabledRoutes, description="Routes that can be switched off."
    )
    custom_router_prefix: str = Field(
        default="/custom",
        description="Path before an application's own routes.  Empty: none.  Default /custom: the "
        "guide's.",
    )
    max_file_size: int = Field(
        default=10 * MIB,
        ge=1,
        le=1024 * MIB,
        description="Bytes of the largest attached file.  Default 10 MiB: the guide's.",
    )
    max_body_bytes: int = Field(
        default=10 * MIB,
        ge=1024,
        le=1024 * MIB,
        description="Bytes of the largest request body; more is refused with 413.  Default "
        "10 MiB: room for one attachment.",
    )
    sse_heartbeat: float = Field(
        default=15,
        ge=0.05,
        le=3600,
        description="Seconds of silence after which a stream gets a comment line.  Default 15: "
        "below the 30 s some proxies allow.",
    )
    admin_token: Token | None = Field(
        default=None,
        description="Secret of the operator routes.  At least 16 characters.  Unset: those routes "
        "are disabled.",
    )

    @field_validator("custom_router_prefix")
    @classmethod
    def _path(cls, value: str) -> str:
        if value and (not value.startswith("/") or value.endswith("/")):
            raise ValueError("must start with / and not end with one, or be empty")
        return value


class LoggerLevel(Block):
    """`logging.ak` and `logging.system`."""

    level: LogLevel | None = Field(
        default=None,
        description="Least severe level written.  Unset: INFO for ak, WARNING for system.",
    )

    @field_validator("level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


class Logging(Block):
    """`logging`: what is written to standard error."""

    ak: LoggerLevel = Field(default_factory=LoggerLevel, description="Turnline's own loggers.")
    system: LoggerLevel = Field(default_factory=LoggerLevel, description="All other loggers.")
    format: LogFormat = Field(
        default="auto",
        description="Form of a line.  auto: console on a terminal, json elsewhere.  Default auto: "
        "readable by whoever reads.",
    )


class Telemetry(Block):
    """`telemetry`: metrics and traces."""

    otlp_endpoint: HttpUrl | None = Field(
        default=None, description="Where traces are sent (OTLP).  Unset: nowhere."
    )
    service_name: str = Field(
        default="turnline",
        min_length=1,
        max_length=200,
        description="Name in traces.  A process that is a part of the pipeline adds which: "
        "turnline-runner.  Default turnline.",
    )
    metrics: bool = Field(
        default=True, description="Serve GET /metrics.  Default true: it costs little."
    )
