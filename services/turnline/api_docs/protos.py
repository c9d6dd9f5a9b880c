"""The .proto files as protoc sees them, with their comments."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

PROTO = Path(__file__).absolute().parents[3] / "proto"

# Numbers of the fields that hold the parts of a file, by which a comment says where it belongs.
_MESSAGE, _ENUM, _SERVICE = 4, 5, 6
_HEADING = (12,)


@cache
def proto_files() -> tuple[FileDescriptorProto, ...]:
    """Give every .proto file, in order of name, with the places of its comments.

    Raises:
        RuntimeError: protoc refuses them.
    """
    names = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    well_known = files(grpc_tools) / "_proto"
    with TemporaryDirectory() as folder:
        image = Path(folder) / "image.binpb"
        options = ["--include_source_info", f"--descriptor_set_out={image}"]
        code = protoc.main(["protoc", f"-I{PROTO}", f"-I{well_known}", *options, *names])
        if code:
            raise RuntimeError(f"protoc ended with exit code {code}")
        return tuple(FileDescriptorSet.FromString(image.read_bytes()).file)


@cache
def proto_comments() -> Mapping[str, str]:
    """Give the comments by the full name of what they are about; a file's own by its path.

    Lines of a paragraph are joined; paragraphs stay apart by an empty line.
    """
    found: dict[str, str] = {}
    for file in proto_files():
        for location in file.source_code_info.location:
            path = tuple(location.path)
            if path == _HEADING and location.leading_detached_comments:
                found[file.name] = _joined(location.leading_detached_comments[0])
            elif location.leading_comments and (name := _name_at(file, path)):
                found[name] = _joined(location.leading_comments)
    return found


def _name_at(file: FileDescriptorProto, path: tuple[int, ...]) -> str:
    """Give the full name of what is at a path; empty where that is no part that has one here."""
    match path:
        case (kind, number) if kind in (_MESSAGE, _ENUM, _SERVICE):
            return f"{file.package}.{_part(file, kind, number).name}"
        # 2 is fields, values and methods alike.
        case (kind, number, 2, member) if kind in (_MESSAGE, _ENUM, _SERVICE):
            part = _part(file, kind, number)
            members = {_MESSAGE: "field", _ENUM: "value", _SERVICE: "method"}
            return f"{file.package}.{part.name}.{getattr(part, members[kind])[member].name}"
        case _:
            return ""


def _part(
    file: FileDescriptorProto, kind: int, number: int
) -> Any:  # noqa: ANN401 - of three types
    parts: dict[int, Any] = {
        _MESSAGE: file.message_type,
        _ENUM: file.enum_type,
        _SERVICE: file.service,
    }
    return parts[kind][number]


def _joined(comment: str) -> str:
    paragraphs = re.split(r"\n[ \t]*\n", comment.strip("\n"))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).strip()
