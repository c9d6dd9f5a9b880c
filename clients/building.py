"""What the builds of clients share: running tools, and generating code from `proto/` with buf.

Knows no language.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import yaml

ROOT = Path(__file__).absolute().parents[1]
PROTO = ROOT / "proto"
LICENSE = ROOT / "LICENSE"
TEMPLATE = PROTO / "buf.gen.yaml"
VERSION = "0.1.0"
"""Of every client; the same as the server's."""

_TOOL_SECONDS = 600

Made = TypeVar("Made")


class BuildError(Exception):
    """Something that is needed is missing or failed; the text says what."""


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a tool in a folder and give what it printed.

    Args:
        environment: what to add to that of this process.

    Raises:
        BuildError: it is not installed, fails, or takes more than ten minutes.
    """
    if shutil.which(command[0]) is None:
        raise BuildError(f"{command[0]} is not on the PATH")
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=_TOOL_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{' '.join(command)} had not ended after {_TOOL_SECONDS} s") from error
    if ended.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def generate(
    language: str,
    folder: Path,
    plugins: Path | None = None,
    protoc: Sequence[str] = (),
    *,
    protos: Path = PROTO,
) -> None:
    """Write the code of the protocol in one language into a folder.

    Args:
        language: the first part of `out` in `proto/buf.gen.yaml`; not a part of the paths written.
        plugins: folder of the generators, `protoc-gen-*`; None means that none is needed.
        protoc: command of the protoc for what is built into it; empty means the one on the PATH.
        protos: what to generate code of.

    Raises:
        BuildError: buf or a generator failed.
    """
    template = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    template["plugins"] = [
        {**plugin, "out": str(folder), **_protoc_of(plugin, protoc)}
        for plugin in template["plugins"]
        if plugin["out"] == language
    ]
    if language == "python":
        del template["managed"]
    folder.mkdir(parents=True, exist_ok=True)
    searched = [] if plugins is None else [str(plugins)]
    path = os.pathsep.join([*searched, os.environ.get("PATH", os.defpath)])
    with TemporaryDirectory() as home:
        command = [_buf(), "generate", str(protos), "--template", json.dumps(template)]
        run(command, folder, {"HOME": home, "BUF_CACHE_DIR": home, "PATH": path})


def main(
    builders: Mapping[str, Callable[[Path], Made]],
    arguments: Sequence[str],
    usage: str,
    show: Callable[[Made], str] = str,
) -> int:
    """Build what the arguments say, `NAME FOLDER`, and print what it made; 2: they say nothing."""
    match arguments:
        case [name, folder] if name in builders:
            try:
                print(show(builders[name](Path(folder).absolute())))
            except BuildError as error:
                print(error, file=sys.stderr)
                return 1
            return 0
        case _:
            print(usage, file=sys.stderr)
            return 2


def _protoc_of(plugin: Mapping[str, object], protoc: Sequence[str]) -> dict[str, object]:
    return {"protoc_path": list(protoc)} if protoc and "protoc_builtin" in plugin else {}


def _buf() -> str:
    beside_python = Path(sys.prefix) / "bin" / "buf"
    if beside_python.exists():
        return str(beside_python)
    for file in files("buf-bin") or ():
        if file.name == "buf":
            return str(Path(str(file.locate())).resolve())
    raise BuildError("buf comes with the buf-bin package, which is not installed")
