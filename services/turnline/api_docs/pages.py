"""All pages by file name, as they are committed."""

from pathlib import Path

import yaml

from turnline.api_docs.asyncapi import asyncapi_document
from turnline.api_docs.grpc_page import grpc_page
from turnline.api_docs.internal import internal_document
from turnline.api_docs.protos import proto_comments, proto_files
from turnline.protocol.json_schema import JsonSchema
from turnline.request_handler.openapi import openapi_document

OUT = Path(__file__).absolute().parents[3] / "docs" / "api"

_VERSION = "v1"
"""Of the protocol: `turnline.v1`."""

_HEADER = "# Made by `python -m turnline.api_docs`; do not edit.\n"


class _Plain(yaml.SafeDumper):
    """Writes everything where it stands, without anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """See `yaml.SafeDumper`."""
        return True


def pages() -> dict[str, str]:
    """Give the text of each page.

    Raises:
        RuntimeError: protoc refuses the .proto files.
    """
    comments = proto_comments()
    openapi = openapi_document(authenticated=True, agents=True, comments=comments)
    openapi["info"]["version"] = _VERSION
    return {
        "asyncapi.yaml": _yaml(asyncapi_document(comments, version=_VERSION)),
        "grpc.md": grpc_page(proto_files(), comments),
        "openapi-internal.yaml": _yaml(internal_document(comments, version=_VERSION)),
        "openapi.yaml": _yaml(openapi),
    }


def _yaml(document: JsonSchema) -> str:
    text: str = yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)
    return _HEADER + text
