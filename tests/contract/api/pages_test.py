"""The pages of docs/api are fresh, sound by the rules of their formats, and leave no route out."""

from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from contract.api.documents import DOCS, document, references, resolved
from contract.api.published import asyncapi_schema
from turnline.api_docs.pages import pages
from turnline.api_docs.protos import proto_comments
from turnline.request_handler.openapi import openapi_document
from turnline.request_handler.rig import open_rig

PAGES = pages()
DOCUMENT = document("openapi.yaml")
ASYNC = document("asyncapi.yaml")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_made_from_what_the_product_runs_on(name: str) -> None:
    """Otherwise: python -m turnline.api_docs."""
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name]


def test_the_folder_holds_no_page_that_nobody_makes() -> None:
    assert {path.name for path in DOCS.iterdir()} == {*PAGES, "README.md"}


@pytest.mark.parametrize("name", ["openapi.yaml", "openapi-internal.yaml"])
def test_an_openapi_document_is_sound(name: str) -> None:
    sound = OpenAPIV31SpecValidator(dict(document(name)))

    faults = [str(error) for error in sound.iter_errors()]

    assert faults == []


def test_a_wrong_openapi_document_is_seen() -> None:
    wrong = {**DOCUMENT, "paths": {"no-slash": {}}}

    assert list(OpenAPIV31SpecValidator(wrong).iter_errors())


def test_the_asyncapi_document_is_sound() -> None:
    schema = jsonschema_rs.Draft7Validator(asyncapi_schema("3.0.0"))

    assert [error.message for error in schema.iter_errors(dict(ASYNC))] == []


def test_a_wrong_asyncapi_document_is_seen() -> None:
    schema = jsonschema_rs.Draft7Validator(asyncapi_schema("3.0.0"))

    assert not schema.is_valid({**ASYNC, "operations": {"admit": {"action": "shout"}}})


@pytest.mark.parametrize("name", ["asyncapi.yaml", "openapi.yaml", "openapi-internal.yaml"])
def test_every_reference_leads_somewhere(name: str) -> None:
    found = set(references(document(name)))

    assert found
    for reference in found:
        assert resolved(document(name), {"$ref": reference})


def test_every_message_of_a_channel_has_a_payload_and_every_schema_a_use() -> None:
    for channel in ASYNC["channels"].values():
        for message in channel["messages"].values():
            assert resolved(ASYNC, message)["payload"]
    used = {reference.rpartition("/")[2] for reference in references(ASYNC)}
    assert ASYNC["components"]["schemas"].keys() - used == set()


async def test_the_served_document_is_the_page_without_the_comments() -> None:
    async with open_rig() as rig:
        served = (await rig.client.get("/openapi.json")).json()
    page = openapi_document(authenticated=False, agents=True, comments=proto_comments())

    assert len(str(page)) > len(str(served))
    assert undescribed(page) == undescribed(served)


async def test_every_route_of_the_request_handler_is_in_the_document() -> None:
    async with open_rig() as rig:
        paths = {getattr(route, "path", "") for route in rig.app.routes}

    assert paths == DOCUMENT["paths"].keys()


def undescribed(node: Any) -> Any:  # noqa: ANN401 - any JSON
    """Give a document without its descriptions."""
    if isinstance(node, dict):
        return {key: undescribed(value) for key, value in node.items() if key != "description"}
    return [undescribed(item) for item in node] if isinstance(node, list | tuple) else node
