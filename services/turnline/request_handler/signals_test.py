"""What the routes count, log and trace."""

from turnline.protocol import TraceContext
from turnline.request_handler.rig import RigOptions, open_rig
from turnline.telemetry import Metrics, captured_logs

PATH = "/api/v1/chat"


def counted(metrics: Metrics) -> set[str]:
    """Give the lines of `requests_total`, without its prefix."""
    lines = metrics.render()[0].decode().splitlines()
    prefix = "turnline_requests_total"
    return {line[len(prefix) :] for line in lines if line.startswith(prefix + "{")}


async def test_requests_are_counted_by_way_mode_and_status() -> None:
    async with open_rig(RigOptions(reply_budget=0.05)) as rig:
        body = {"prompt": "x", "session_id": "s1", "request_id": "r1"}
        await rig.client.post(PATH, json=body)
        await rig.client.post(PATH, json=body, headers={"Accept": "text/event-stream"})
        await rig.client.post(
            PATH, json={**body, "request_id": "r2"}, headers={"Prefer": "respond-async"}
        )
        await rig.client.post(PATH, content=b"{")
        await rig.chat("hold")
        await rig.poll("nobody")
        await rig.client.put(PATH)
        await rig.client.delete(PATH, params={"request_id": "r1"})

    assert counted(rig.metrics) == {
        '{mode="rest_sync",status="200",surface="rest"} 1.0',
        '{mode="stream",status="200",surface="sse"} 1.0',
        '{mode="rest_async",status="202",surface="rest"} 1.0',
        '{mode="rest_sync",status="422",surface="rest"} 1.0',
        '{mode="rest_sync",status="504",surface="rest"} 1.0',
        '{mode="read",status="404",surface="rest"} 1.0',
        '{mode="read",status="405",surface="rest"} 1.0',
        '{mode="cancel",status="200",surface="rest"} 1.0',
    }


async def test_requests_are_timed() -> None:
    async with open_rig() as rig:
        await rig.chat()

    rendered = rig.metrics.render()[0].decode()
    assert 'turnline_request_seconds_count{mode="rest_sync",surface="rest"} 1.0' in rendered


async def test_an_admitted_turn_is_logged_once_and_without_its_prompt() -> None:
    async with open_rig() as rig:
        with captured_logs() as records:
            await rig.chat("a secret prompt", request_id="r1")
            await rig.chat("a secret prompt", request_id="r1")

    admitted = [record for record in records if record["event"] == "turn.admitted"]
    assert [(r["request_id"], r["session_id"], r["mode"]) for r in admitted] == [
        ("r1", "s1", "rest_sync")
    ]
    assert "secret" not in repr(records)


async def test_a_trace_goes_on_with_the_turn() -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    async with open_rig() as rig:
        body = {"prompt": "x", "session_id": "s1"}
        headers = {"traceparent": parent, "tracestate": "v=1"}
        await rig.client.post(PATH, json=body, headers=headers)

    assert rig.envelopes[0].trace == TraceContext(traceparent=parent, tracestate="v=1")
