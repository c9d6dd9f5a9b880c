"""The routes keep to their OpenAPI document, whatever is sent."""

import asyncio
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from turnline.request_handler.openapi import openapi_document
from turnline.request_handler.rig import RigOptions, open_rig, serve

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = [
    ("POST", "/api/v1/chat"),
    ("GET", "/api/v1/chat"),
    ("DELETE", "/api/v1/chat"),
    ("POST", "/api/v1/chat-multipart"),
    ("GET", "/api/v1/agents"),
    ("GET", "/openapi.json"),
]


def run_examples(url: str, method: str, path: str, mode: GenerationMode) -> set[int]:
    """Send made-up requests and check the answers; give the statuses seen."""
    document = openapi_document(authenticated=False, agents=True)
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=url)
    operation = schema[path][method]
    documented = document["paths"][path][method.lower()]["responses"]
    seen: set[int] = set()

    @settings(
        max_examples=60,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Case[Any]) -> None:
        answer = case.call(timeout=10)
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)
        # The document's 4XX is for agents; what the service says itself stands there in full.
        assert str(answer.status_code) in documented

    send()
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_sound_requests_are_answered_as_documented(method: str, path: str) -> None:
    async with open_rig(RigOptions(reply_budget=5.0)) as rig, serve(rig) as client:
        url = str(client.base_url)
        seen = await asyncio.to_thread(run_examples, url, method, path, GenerationMode.POSITIVE)

    assert seen & {200, 404}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS[:4])
async def test_unsound_requests_are_refused_as_documented(method: str, path: str) -> None:
    async with open_rig(RigOptions(reply_budget=5.0)) as rig, serve(rig) as client:
        url = str(client.base_url)
        seen = await asyncio.to_thread(run_examples, url, method, path, GenerationMode.NEGATIVE)

    assert seen & {400, 422}


@pytest.mark.parametrize("authenticated", [False, True])
def test_the_document_is_sound_openapi(authenticated: bool) -> None:
    document = openapi_document(authenticated=authenticated, agents=True)

    schemathesis.openapi.from_dict(document).validate()


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = openapi_document(authenticated=True, agents=True)
    schemas = document["components"]["schemas"]

    assert {f"#/components/schemas/{name}" for name in schemas} >= references(document)


def test_a_route_that_is_off_is_not_in_the_document() -> None:
    assert "/api/v1/agents" not in openapi_document(authenticated=False, agents=False)["paths"]


def references(node: Any) -> set[str]:  # noqa: ANN401 - any JSON
    """Collect every `$ref` below a node."""
    if isinstance(node, list | tuple):
        return {found for item in node for found in references(item)}
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"]} if "$ref" in node else set()
    return own.union(*(references(item) for item in node.values()))
