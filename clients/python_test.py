"""The Python client: built, packed, installed into an empty environment, and tested there."""

import os
import shutil
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from clients import build_python
from clients.building import ROOT, run
from clients.testing.rig import rig
from clients.testing.runner import run_tests

pytestmark = pytest.mark.timeout(800)

TESTS = build_python.SOURCES / "client_tests"
LOCKS = ROOT / "3rdparty" / "python"
# What the client asks for, and what that asks for.
NEEDED = ("googleapis-common-protos", "grpcio", "protobuf", "typing-extensions")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_python.package(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the client, pytest and mypy alone."""
    folder = tmp_path_factory.mktemp("consumer")
    needed = folder / "needed.lock"
    needed.write_text("".join(locked(name) for name in (*NEEDED, "types-protobuf", "types-grpcio")))
    tools = [str(LOCKS / "tools" / f"{tool}.lock") for tool in ("pytest", "mypy")]
    files = [argument for lock in (str(needed), *tools) for argument in ("-r", lock)]
    venv.create(folder)
    python = folder / "bin" / "python"
    pip = [*build_python.pip(), f"--python={python}"]
    run([*pip, "install", "--no-compile", "--require-hashes", *files], folder)
    run([*pip, "install", "--no-index", "--no-deps", str(wheel)], folder)
    run([*pip, "check"], folder)
    return python


def locked(name: str) -> str:
    """The entry of a distribution in the lock of the code."""
    lines = iter((LOCKS / "default.lock").read_text(encoding="utf-8").splitlines(keepends=True))
    for line in lines:
        if line.startswith((f"{name}==", f"{name}[")):
            entry = [line]
            while entry[-1].endswith("\\\n"):
                entry.append(next(lines))
            return "".join(entry)
    raise AssertionError(f"{name} is not locked")


async def test_the_installed_client_passes_its_tests(python: Path, tmp_path: Path) -> None:
    tests = shutil.copytree(TESTS, tmp_path / TESTS.name)

    async with rig(tmp_path) as environment:
        command = [str(python), "-m", "pytest", "-q", "--timeout=150", str(tests)]
        await run_tests(command, tmp_path, {**environment, "PYTHONPATH": ""}, r"(\d+) passed")


def test_the_installed_client_is_typed(python: Path, tmp_path: Path) -> None:
    tests = shutil.copytree(TESTS, tmp_path / TESTS.name)

    mypy = [str(python), "-m", "mypy", "--strict", f"--cache-dir={os.devnull}"]
    run([*mypy, str(tests)], tmp_path, {"PYTHONPATH": ""})


def test_the_stubs_of_the_repository_are_those_of_the_protocol(tmp_path: Path) -> None:
    build_python.generate(tmp_path)

    made = {path.name: path.read_bytes() for path in (tmp_path / build_python.WIRE).iterdir()}
    kept = build_python.SOURCES / build_python.WIRE
    assert made == {path.name: path.read_bytes() for path in kept.glob("*.py*")}


def test_the_same_sources_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    assert build_python.package(tmp_path).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("first", ["turnline.v1", "turnline_client._wire"])
def test_a_process_holds_the_client_and_the_server(wheel: Path, tmp_path: Path, first: str) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    imports = (
        "import turnline.v1.chat_service_pb2 as server, turnline_client._wire.chat_service_pb2"
    )
    code = (
        f"import {first}.chat_service_pb2; {imports} as client;"
        "asked = client.CancelRequest(request_id='r1').SerializeToString();"
        "print(server.CancelRequest.FromString(asked).request_id)"
    )

    searched = os.pathsep.join([str(tmp_path), *sys.path])
    said = run([sys.executable, "-c", code], tmp_path, {"PYTHONPATH": searched})

    assert said == "r1\n"
