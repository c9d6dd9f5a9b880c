"""Turnline as the tests of clients need it, in any language: they are told of it by environment.

| variable | is |
|---|---|
| `TURNLINE_OPEN` | `host:port` of gRPC without TLS and tokens; nothing there is scarce |
| `TURNLINE_STRICT` | the same with TLS, tokens, and little of everything, see `STRICT` |
| `TURNLINE_STRICT_CA` | PEM file that vouches for it |
| `TURNLINE_TOKEN`, `TURNLINE_OTHER_TOKEN` | tokens of two users |
| `TURNLINE_DRAINING`, `TURNLINE_DRAINING_PID` | one to be told to stop (SIGTERM), once |
| `TURNLINE_FOLDER` | an empty folder, for the files that the agent `hold` waits for |
| `TURNLINE_GOLDEN` | folder of the golden vectors |
| `TURNLINE_STATUSES` | how each failure ends a call: `statuses.json` of the wire contract |

The agents are those of `agents.py`; the servers end with this process, whatever ends it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from clients.building import ROOT
from e2e.process import dev, serving
from e2e.tokens import SECRET, token_for
from turnline.testing.servers.tls import self_signed

AGENTS = Path(__file__).with_name("agents.py")
CONTRACT = ROOT / "tests" / "contract" / "proto"

OPEN = {
    "AK_API__GRPC_PORT": "0",
    "AK_EXECUTION__QUEUES__TYPE": "in_memory",
    "AK_EXECUTION__QUEUES__IN_MEMORY__RETRY_BACKOFF": "0.05",
}
# Callers who wait for a held turn are sent away after a second.
DRAINING = {**OPEN, "AK_EXECUTION__DRAIN_GRACE": "1"}
STRICT = {
    **OPEN,
    "AK_AUTH__TYPE": "jwt",
    "AK_AUTH__JWT__SECRET": SECRET,
    # More is too large.
    "AK_API__MAX_BODY_BYTES": "100000",
    # Two turns of a session at once, then it is full.
    "AK_EXECUTION__QUEUES__IN_MEMORY__MAX_MESSAGES_PER_SESSION": "2",
    # A waiting caller's turn is cut off after so many seconds; all others must be faster.
    "AK_EXECUTION__RESPONSE_STORE__RETRY_COUNT": "1",
    "AK_EXECUTION__RESPONSE_STORE__DELAY": "6",
    # A stream of some hundred words loses the first of them.
    "AK_EXECUTION__RESPONSE_STORE__IN_MEMORY__MAX_BYTES": "32768",
}


@asynccontextmanager
async def rig(folder: Path) -> AsyncIterator[dict[str, str]]:
    """Start it all in a folder, for the length of the block; gives the environment."""
    tls = self_signed(folder)
    strict = {
        **STRICT,
        "AK_API__GRPC_CERTIFICATE_FILE": str(tls.certificate),
        "AK_API__GRPC_PRIVATE_KEY_FILE": str(tls.key),
    }
    held = folder / "held"
    held.mkdir()
    async with (
        serving(folder / "open", *dev(AGENTS), settings=OPEN) as open_,
        serving(folder / "strict", *dev(AGENTS), settings=strict) as strict_,
        serving(folder / "draining", *dev(AGENTS), settings=DRAINING) as draining,
    ):
        yield {
            "TURNLINE_OPEN": f"127.0.0.1:{open_.grpc_port}",
            "TURNLINE_STRICT": f"localhost:{strict_.grpc_port}",
            "TURNLINE_STRICT_CA": str(tls.certificate),
            "TURNLINE_TOKEN": token_for("u1"),
            "TURNLINE_OTHER_TOKEN": token_for("u2"),
            "TURNLINE_DRAINING": f"127.0.0.1:{draining.grpc_port}",
            "TURNLINE_DRAINING_PID": str(draining.process.pid),
            "TURNLINE_FOLDER": str(held),
            "TURNLINE_GOLDEN": str(CONTRACT / "golden"),
            "TURNLINE_STATUSES": str(CONTRACT / "statuses.json"),
        }
