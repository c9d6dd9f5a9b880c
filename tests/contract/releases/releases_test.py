"""A release leaves a wheel, the protocol's baseline and a section in the changelog, of one version.

Versions of the protocol are packages (`turnline.v1`): what breaks somebody goes into the next one.
"""

import ast
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.json_format import MessageToDict

ROOT = Path(__file__).absolute().parents[3]
PROTOCOL = re.compile(r"turnline/v\d+/\w+\.proto")
STUB = re.compile(r"turnline/v\d+/\w+_pb2\.py")
HEADING = "### Protocol"

Files = Mapping[str, Mapping[str, object]]


def test_the_newest_release_of_the_changelog_is_the_wheel() -> None:
    assert released_sections()[0] == wheel().name.split("-")[1]


def test_the_baseline_of_the_protocol_is_what_the_wheel_speaks() -> None:
    spoken = spoken_by_wheel()

    assert spoken
    assert baseline() == spoken


def test_the_changelog_tells_of_the_protocol_exactly_if_it_has_changed() -> None:
    has_changed = baseline() != spoken_here()

    assert (HEADING in unreleased()) == has_changed


def wheel() -> Path:
    (found,) = (ROOT / "tests/contract/releases").glob("*.whl")
    return found


def changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def released_sections() -> list[str]:
    return re.findall(r"^## (\d+\.\d+\.\d+)", changelog(), re.MULTILINE)


def unreleased() -> list[str]:
    return re.split(r"^## ", changelog(), flags=re.MULTILINE)[1].splitlines()


def baseline() -> Files:
    raw = (ROOT / "tests/contract/proto/baseline/v1.binpb").read_bytes()
    return normal(FileDescriptorSet.FromString(raw).file)


def spoken_by_wheel() -> Files:
    with zipfile.ZipFile(wheel()) as packed:
        stubs = [name for name in packed.namelist() if STUB.fullmatch(name)]
        return normal([described(packed.read(name).decode()) for name in stubs])


def spoken_here() -> Files:
    stubs = (ROOT / "gen/python").rglob("turnline/v*/*_pb2.py")
    return normal([described(path.read_text(encoding="utf-8")) for path in stubs])


def described(stub: str) -> FileDescriptorProto:
    """Give the file that a stub was made of; the stub is not run."""
    calls = [node for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.Call)]
    (raw,) = [
        call.args[0]
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "AddSerializedFile"
    ]
    return FileDescriptorProto.FromString(ast.literal_eval(raw))


def normal(files: Iterable[FileDescriptorProto]) -> Files:
    """Give the protocol's files by name; compilers differ in what else they note."""
    return {
        file.name: _without_json_names(MessageToDict(file))
        for file in files
        if PROTOCOL.fullmatch(file.name)
    }


def _without_json_names(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key != "jsonName"}
        return {key: _without_json_names(part) for key, part in kept.items()}
    if isinstance(value, list):
        return [_without_json_names(part) for part in value]
    return value
