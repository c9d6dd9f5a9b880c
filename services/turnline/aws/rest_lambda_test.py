"""REST through the functions: what callers are answered."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest

from turnline.aws.rig import Cloud, body_of, http_event
from turnline.testing.servers.dynamodb import DynamoDbServer
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.lambda_runtime import LambdaFunction
from turnline.testing.servers.tcp_proxy import TcpProxy


@pytest.fixture
async def handler(cloud: Cloud) -> AsyncIterator[LambdaFunction]:
    """The request handler, with the runner and the response handler behind it."""
    async with (
        cloud.function("app_request_handler") as handler,
        cloud.function("app_agent_runner") as runner,
        cloud.function("app_response_handler") as responder,
        asyncio.TaskGroup() as tasks,
    ):
        mappings = [
            tasks.create_task(cloud.source(cloud.input_url, runner).run()),
            tasks.create_task(cloud.source(cloud.output_url, responder, batch_size=10).run()),
        ]
        # None of the functions is cold when a caller waits.
        await poll_until_answered(handler)
        yield handler
        for mapping in mappings:
            mapping.cancel()


async def poll_until_answered(handler: LambdaFunction) -> None:
    body = {"prompt": "say first", "session_id": "first", "request_id": "first"}
    await handler.invoke(http_event("POST", body=body, headers={"prefer": "respond-async"}))
    async with asyncio.timeout(120):
        while "result" not in body_of(
            await handler.invoke(http_event("GET", query="request_id=first&wait=15"))
        ):
            pass


async def test_every_way_to_ask_is_answered(handler: LambdaFunction) -> None:
    """One installation for many questions: its processes take seconds to start."""
    await answers_in_the_same_response(handler)
    await accepts_and_answers_a_poll(handler)
    await takes_a_body_in_base64(handler)
    await surfaces_a_failure_with_its_status(handler)
    await streams_events_as_far_as_they_came(handler)
    await scopes_turns_to_whom_the_authorizer_found(handler)


async def answers_in_the_same_response(handler: LambdaFunction) -> None:
    answer = await handler.invoke(
        http_event("POST", body={"prompt": "say hello there", "session_id": "s1"})
    )

    assert answer["statusCode"] == 200
    assert answer["headers"]["content-type"] == "application/json"
    assert body_of(answer)["result"] == "hello there "
    assert body_of(answer)["session_id"] == "s1"


async def accepts_and_answers_a_poll(handler: LambdaFunction) -> None:
    body = {"prompt": "say later", "session_id": "s2"}
    accepted = await handler.invoke(
        http_event("POST", body=body, headers={"prefer": "respond-async"})
    )
    request_id = body_of(accepted)["request_id"]
    polled = await handler.invoke(http_event("GET", query=f"request_id={request_id}&wait=20"))
    again = await handler.invoke(http_event("GET", query=f"request_id={request_id}"))

    assert (accepted["statusCode"], body_of(accepted)["status"]) == (202, "ACCEPTED")
    assert (polled["statusCode"], body_of(polled)["result"]) == (200, "later ")
    assert body_of(again) == body_of(polled)


async def takes_a_body_in_base64(handler: LambdaFunction) -> None:
    event = http_event("POST")
    raw = '{"prompt": "say ünï", "session_id": "s3"}'.encode()
    event["body"], event["isBase64Encoded"] = base64.b64encode(raw).decode(), True

    assert body_of(await handler.invoke(event))["result"] == "ünï "


async def surfaces_a_failure_with_its_status(handler: LambdaFunction) -> None:
    body = {"prompt": "x", "session_id": "s4", "agent": "nobody"}
    answer = await handler.invoke(http_event("POST", body=body))

    assert (answer["statusCode"], body_of(answer)["detail"]["code"]) == (400, "unknown_agent")


async def streams_events_as_far_as_they_came(handler: LambdaFunction) -> None:
    body = {"prompt": "say one two", "session_id": "s5"}
    answer = await handler.invoke(
        http_event("POST", body=body, headers={"accept": "text/event-stream"})
    )

    assert answer["headers"]["content-type"].startswith("text/event-stream")
    assert '"delta":"one "' in answer["body"]
    assert answer["body"].count('"done":true') == 1


async def scopes_turns_to_whom_the_authorizer_found(handler: LambdaFunction) -> None:
    body = {"prompt": "count", "session_id": "s1", "user_id": "somebody else"}
    authorizer = {"jwt": {"claims": {"userId": "u1"}, "scopes": None}}
    headers = {"authorization": "Bearer of-somebody-else"}
    mine = await handler.invoke(
        http_event("POST", body=body, headers=headers, authorizer=authorizer)
    )
    request_id = body_of(mine)["request_id"]
    others = {"lambda": {"userId": "u2"}}
    foreign = await handler.invoke(
        http_event("GET", query=f"request_id={request_id}", authorizer=others)
    )
    nobody = await handler.invoke(http_event("POST", body=body, authorizer={"lambda": {"a": 1}}))

    assert body_of(mine)["result"] == "1 of u1 "
    assert body_of(foreign)["error"] == "NOT_FOUND"
    assert (nobody["statusCode"], body_of(nobody)["detail"]["code"]) == (401, "unauthenticated")


async def test_an_answer_that_never_arrives_is_not_found_under_a_200(cloud: Cloud) -> None:
    more = {"AK_EXECUTION__RESPONSE_STORE__RETRY_COUNT": "2"}
    async with cloud.function("app_request_handler", more=more) as handler:
        waited = await handler.invoke(http_event("POST", body={"prompt": "x", "session_id": "s"}))
        request_id = body_of(waited)["request_id"]
        polled = await handler.invoke(http_event("GET", query=f"request_id={request_id}"))
        unknown = await handler.invoke(http_event("GET", query="request_id=unknown"))

    for answer in (waited, polled, unknown):
        assert (answer["statusCode"], body_of(answer)["error"]) == (200, "NOT_FOUND")
    assert body_of(polled)["code"] == "reply_not_ready"
    assert body_of(unknown)["code"] == "not_found"


async def test_a_turn_that_waits_is_cancelled_through_a_rest_api(cloud: Cloud) -> None:
    def old_event(method: str) -> dict[str, object]:
        return {
            "httpMethod": method,
            "path": "/api/v1/chat",
            "multiValueHeaders": {"Prefer": ["respond-async"]},
            "multiValueQueryStringParameters": None if method == "POST" else {"request_id": ["r"]},
            "requestContext": {"stage": "prod", "identity": {"sourceIp": "192.0.2.1"}},
            "body": '{"prompt": "x", "session_id": "s", "request_id": "r"}',
            "isBase64Encoded": False,
        }

    async with cloud.function("app_request_handler") as handler:
        told = [await handler.invoke(old_event(method)) for method in ("POST", "DELETE", "GET")]

    assert [each["statusCode"] for each in told] == [202, 200, 499]
    assert body_of(told[1])["status"] == "CANCELLED"
    assert body_of(told[2])["detail"]["code"] == "turn_cancelled"
    assert all(each["multiValueHeaders"]["content-type"] for each in told)


async def test_a_caller_waits_no_longer_than_the_function_lives(cloud: Cloud) -> None:
    async with cloud.function("app_request_handler", timeout=4.0) as handler:
        answer = await handler.invoke(http_event("POST", body={"prompt": "x", "session_id": "s"}))
        log = handler.log

    assert (answer["statusCode"], body_of(answer)["error"]) == (200, "NOT_FOUND")
    assert "but the function's timeout leaves" in log


async def test_paths_methods_and_bodies_that_are_wrong_are_refused_as_everywhere(
    cloud: Cloud,
) -> None:
    async with cloud.function("app_request_handler") as handler:
        told = [
            await handler.invoke(http_event("GET", "/app")),
            await handler.invoke(http_event("GET", "/nowhere")),
            await handler.invoke(http_event("PUT", body={})),
            await handler.invoke(http_event("POST", body=[1])),
            await handler.invoke(http_event("GET")),
            await handler.invoke(http_event("GET", "/health")),
        ]

    assert [each["statusCode"] for each in told] == [200, 404, 405, 422, 400, 200]
    assert body_of(told[0]) == {"path": "/app"}
    assert all("error" in body_of(each)["detail"] for each in told[1:3])


async def test_a_sandbox_that_thaws_with_dead_connections_answers_as_before(
    cloud: Cloud, sqs: ElasticMqServer, dynamodb: DynamoDbServer
) -> None:
    async with TcpProxy(sqs.port) as queues, TcpProxy(dynamodb.port) as tables:
        tables_url = f"http://127.0.0.1:{tables.port}"
        more = {
            "AK_EXECUTION__QUEUES__SQS__ENDPOINT_URL": f"http://127.0.0.1:{queues.port}",
            "AK_EXECUTION__RESPONSE_STORE__DYNAMODB__ENDPOINT_URL": tables_url,
            "AK_SESSION__DYNAMODB__ENDPOINT_URL": tables_url,
        }
        async with cloud.function("app_request_handler", more=more) as handler:
            answers = []
            for number in range(4):
                event = http_event(
                    "POST",
                    body={"prompt": "x", "session_id": f"s{number}"},
                    headers={"prefer": "respond-async"},
                )
                answers.append(await handler.invoke(event))
                handler.freeze()
                queues.cut()
                tables.cut()
                handler.thaw()
            sandboxes = handler.sandboxes

    assert [answer["statusCode"] for answer in answers] == [202] * 4
    assert sandboxes == 1
