"""Builds one of the hosts of this example: `build go FOLDER` or `build typescript FOLDER`.

Prints the command that starts it.  Needs Go 1.26, or Node.js 20 with npm, and their package
indexes; versions are pinned and hashed in `go.sum` and `package-lock.json`.
"""

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from clients.build_go import write_protocol
from clients.build_typescript import NPM_CI
from clients.building import PROTO, main, run

HERE = Path(__file__).parent

Command = list[str]


def go_host(folder: Path) -> Command:
    """Generate the Go code of the protocol and compile the host."""
    shutil.copytree(HERE / "go", folder, dirs_exist_ok=True)
    write_protocol(folder)
    run(["go", "build", "-o", "host", "."], folder)
    return [str(folder / "host")]


def typescript_host(folder: Path) -> Command:
    """Install what the host needs and compile it; it reads the protocol when it starts."""
    shutil.copytree(HERE / "typescript", folder, dirs_exist_ok=True)
    protocol = shutil.copytree(PROTO, folder / "proto", dirs_exist_ok=True)
    run(NPM_CI, folder)
    run(["npm", "run", "--silent", "build"], folder)
    return ["node", str(folder / "dist" / "host.js"), "--proto", str(protocol)]


HOSTS: Mapping[str, Callable[[Path], Command]] = MappingProxyType(
    {"go": go_host, "typescript": typescript_host}
)


if __name__ == "__main__":
    sys.exit(main(HOSTS, sys.argv[1:], str(__doc__), show=" ".join))
