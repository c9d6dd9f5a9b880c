"""Builds one of the hosts of this example: `build go FOLDER` or `build typescript FOLDER`.

Prints the command that starts it.  Needs Go 1.26, or Node.js 20 with npm, and their package
indexes; versions are pinned and hashed in `go.sum` and `package-lock.json`.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import grpc_tools
from grpc_tools import protoc

HERE = Path(__file__).parent
PROTO = HERE.parents[1] / "proto"
TOOLS = (
    "google.golang.org/protobuf/cmd/protoc-gen-go",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
)
MODULE = "turnline.dev/examples/host"
MESSAGES = ("agent", "agent_service", "chat", "chunk", "failure")

Command = list[str]


class BuildError(Exception):
    """Something that is needed is missing or failed; the text says what."""


def go_host(folder: Path) -> Command:
    """Generate the Go code of the protocol and compile the host."""
    shutil.copytree(HERE / "go", folder, dirs_exist_ok=True)
    _run(["go", "build", "-o", "bin/", *TOOLS], folder)
    protocol = _protocol(folder)
    sources = [f"turnline/v1/{name}.proto" for name in MESSAGES]
    options = [f"--{plugin}_opt=module={MODULE}" for plugin in ("go", "go-grpc")]
    for plugin in ("go", "go-grpc"):
        options += [f"--plugin=protoc-gen-{plugin}={folder / 'bin' / f'protoc-gen-{plugin}'}"]
        options += [f"--{plugin}_out={folder}"]
        options += [f"--{plugin}_opt=M{source}={MODULE}/turnline/v1" for source in sources]
    well_known = files(grpc_tools) / "_proto"
    if code := protoc.main(["protoc", f"-I{protocol}", f"-I{well_known}", *options, *sources]):
        raise BuildError(f"protoc ended with exit code {code}")
    _run(["go", "build", "-o", "host", "."], folder)
    return [str(folder / "host")]


def typescript_host(folder: Path) -> Command:
    """Install what the host needs and compile it; it reads the protocol when it starts."""
    shutil.copytree(HERE / "typescript", folder, dirs_exist_ok=True)
    protocol = _protocol(folder)
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
    _run(["npm", "run", "--silent", "build"], folder)
    return ["node", str(folder / "dist" / "host.js"), "--proto", str(protocol)]


HOSTS: Mapping[str, Callable[[Path], Command]] = MappingProxyType(
    {"go": go_host, "typescript": typescript_host}
)


def _protocol(folder: Path) -> Path:
    return Path(shutil.copytree(PROTO, folder / "proto", dirs_exist_ok=True))


def _run(command: Sequence[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise BuildError(f"{command[0]} is not on the PATH; install it, or build the other host")
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")


def main(arguments: Sequence[str]) -> int:
    """Build what the arguments say; 2: they say nothing that can be built."""
    match arguments:
        case [language, folder] if language in HOSTS:
            try:
                print(" ".join(HOSTS[language](Path(folder).absolute())))
            except BuildError as error:
                print(error, file=sys.stderr)
                return 1
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
