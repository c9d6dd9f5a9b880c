"""The stubs of the server and of the Python client work at both ends of the range each asks for."""

import re
import subprocess
import tomllib
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from types import MappingProxyType

import pytest

from clients import build_python
from clients.building import ROOT, run
from contract.proto import golden_check
from contract.proto.golden_cases import GOLDEN, MODULES

REQUIREMENTS = ROOT / "3rdparty" / "python" / "requirements.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stubs:
    """Generated code, and the range of runtimes that its package asks for.

    Attributes:
        sources: the folder of its modules.
        package: their package.
        modules: those with messages that have vectors.
    """

    range: str
    sources: Path
    package: str
    modules: tuple[str, ...]


def asked(lines: str) -> str:
    """The range of Protobuf in a list of requirements."""
    [found] = re.findall(r"^protobuf(>=.+,<.+)$", lines, re.MULTILINE)
    return str(found)


CLIENT = tomllib.loads((build_python.SOURCES / "pyproject.toml").read_text(encoding="utf-8"))
STUBS: Mapping[str, Stubs] = MappingProxyType(
    {
        "server": Stubs(
            range=asked(REQUIREMENTS.read_text(encoding="utf-8")),
            sources=ROOT / "gen" / "python" / "turnline" / "v1",
            package="turnline.v1",
            modules=tuple(module.__name__ for module in MODULES),
        ),
        "client": Stubs(
            range=asked("\n".join(CLIENT["project"]["dependencies"])),
            sources=build_python.SOURCES / build_python.WIRE,
            package=build_python.WIRE.replace("/", "."),
            modules=tuple(f"turnline_client._wire.{name}_pb2" for name in build_python.MESSAGES),
        ),
    }
)


def environment(folder: Path, stubs: Stubs, protobuf: str) -> list[str]:
    """Make one with the stubs and a runtime alone; give the command that checks it."""
    venv.create(folder)
    python = folder / "bin" / "python"
    pip = [*build_python.pip(), f"--python={python}", "install", "--no-compile"]
    run([*pip, f"protobuf{protobuf}"], folder)
    [packages] = folder.glob("lib/*/site-packages")
    copytree(stubs.sources, packages / stubs.package.replace(".", "/"))
    return [str(python), "-I", golden_check.__file__, str(GOLDEN), *stubs.modules]


@pytest.mark.parametrize("end", ["low", "high"])
@pytest.mark.parametrize("name", STUBS)
def test_the_stubs_hold_to_the_vectors_at_each_end(name: str, end: str, tmp_path: Path) -> None:
    stubs = STUBS[name]
    low = stubs.range.partition(",")[0].replace(">=", "==")

    # The newest there is today is what a user who installs today is given.
    command = environment(tmp_path, stubs, low if end == "low" else stubs.range)

    assert int(run(command, tmp_path)) > 10


def test_a_runtime_older_than_the_stubs_is_refused_at_once(tmp_path: Path) -> None:
    client = STUBS["client"]
    command = environment(tmp_path, client, "<" + client.range.partition(",")[0].lstrip(">="))

    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert "VersionError" in ended.stderr
