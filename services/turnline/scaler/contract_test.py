"""Our statement of KEDA's contract, held against the file of a KEDA release."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import grpc_tools
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

from externalscaler import externalscaler_pb2 as pb
from turnline.testing.missing import missing

KEDA = "github.com/kedacore/keda/v2@v2.18.1"
FILE = "pkg/scalers/externalscaler/externalscaler.proto"
DOWNLOAD_SECONDS = 200.0


@pytest.fixture
def published(tmp_path: Path) -> FileDescriptorProto:
    """The contract as KEDA publishes it, from the Go proxy; its sum is checked by Go."""
    if shutil.which("go") is None:
        missing("go is not on the PATH, and KEDA's contract comes from the Go proxy")
    got = subprocess.run(
        ["go", "mod", "download", "-json", KEDA],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=DOWNLOAD_SECONDS,
    )
    if got.returncode:
        missing(f"KEDA cannot be had here: {got.stdout}{got.stderr}")
    source = Path(json.loads(got.stdout)["Dir"]) / FILE
    image = tmp_path / "image.binpb"
    well_known = files(grpc_tools) / "_proto"
    command = ["protoc", f"-I{source.parent}", f"-I{well_known}", f"--descriptor_set_out={image}"]
    assert protoc.main([*command, source.name]) == 0
    [file] = FileDescriptorSet.FromString(image.read_bytes()).file
    return file


def test_names_and_numbers_are_those_of_a_keda_release(published: FileDescriptorProto) -> None:
    ours = FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(ours)

    assert ours.package == published.package
    assert _messages(ours) == _messages(published)
    theirs = _methods(published)
    assert {name: theirs[name] for name in _methods(ours)} == _methods(ours)
    assert theirs.keys() - _methods(ours).keys() <= {"StreamMetricSpec"}


def _messages(file: FileDescriptorProto) -> Mapping[str, object]:
    return {
        message.name: {
            field.name: (field.number, field.type, field.label, field.type_name)
            for field in message.field
        }
        for message in file.message_type
    }


def _methods(file: FileDescriptorProto) -> Mapping[str, object]:
    [service] = file.service
    return {
        method.name: (method.input_type, method.output_type, method.server_streaming)
        for method in service.method
    }
