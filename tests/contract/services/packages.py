"""A service as it is shipped: packed from this source, or taken from an earlier release."""

import os
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from chaos.processes.brokers.port import Block
from chaos.processes.topology import environment
from contract.services import apps
from e2e.process import Server, launched, run
from turnline.testing.missing import missing

ROOT = Path(__file__).absolute().parents[3]
RELEASES = ROOT / "tests/contract/releases"
APP = Path(next(iter(apps.__path__))) / "answering.py"


class Service(StrEnum):
    """A service, by the name of its package."""

    REQUEST_HANDLER = "request_handler"
    GATEWAY = "gateway"
    RUNNER = "runner"
    RESPONDER = "responder"
    PUSH_ENDPOINT = "push_endpoint"
    SCALER = "scaler"


PIPELINE = tuple(service for service in Service if service is not Service.SCALER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The pex of this source.  Outside `./pants test` it is the one that was packaged last."""

    name: ClassVar[str] = "new"

    async def start(self, service: Service, directory: Path, settings: Block) -> Server:
        """Start a service; its caller waits until it is ready, and ends it."""
        return await self.launch(service, directory, environment(settings))

    async def launch(
        self, service: Service, directory: Path, settings: Mapping[str, str], app: Path = APP
    ) -> Server:
        """Start it with variables as they are; a runner runs the agents of `app`."""
        variables = {**settings, **_of_home()}
        if service is Service.RUNNER:
            # A runner needs agents, so an application starts it.
            variables["PEX_INTERPRETER"] = "1"
            return await launched(directory, _pex(service), str(app), settings=variables)
        return await launched(directory, _pex(service), settings=variables)

    async def origin(self, directory: Path) -> Path:
        """Say where its code lies."""
        variables = {**_of_home(), "PEX_INTERPRETER": "1"}
        return await _origin(directory, _pex(Service.RUNNER), settings=variables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The wheel of an earlier release, unpacked, with the packages that the tests run with."""

    name: ClassVar[str] = "old"
    folder: Path

    async def start(self, service: Service, directory: Path, settings: Block) -> Server:
        """See `Packed.start`."""
        variables = environment(settings) | self._paths()
        module = ("-m", f"turnline.{service}.main")
        command = (str(APP),) if service is Service.RUNNER else module
        return await launched(directory, *command, settings=variables)

    async def origin(self, directory: Path) -> Path:
        """See `Packed.origin`."""
        return await _origin(directory, settings=self._paths())

    def _paths(self) -> dict[str, str]:
        return {"PYTHONPATH": os.pathsep.join([str(self.folder), *_packages()])}


Build = Packed | Released


def last_release(folder: Path) -> Released:
    """Unpack the newest wheel in `tests/contract/releases` into an empty folder."""
    wheel = max(RELEASES.glob("*.whl"), key=lambda path: _version(path.name))
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return Released(folder=folder)


async def _origin(directory: Path, *program: str, settings: Mapping[str, str]) -> Path:
    code = "import turnline.errors; print(turnline.errors.__file__)"
    ended = await run(directory, *program, "-c", code, settings=settings)
    return Path(ended.stdout.strip())


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("-")[1].split("."))


def _pex(service: Service) -> str:
    name = f"{service}.pex"
    found = [path for path in (ROOT / name, ROOT / "dist" / name) if path.exists()]
    if not found:
        missing(f"no {name} here: ./pants package services/turnline/{service}:pex")
    return str(found[0])


def _of_home() -> dict[str, str]:
    # Where a pex unpacks itself.
    return {name: os.environ[name] for name in ("HOME", "PEX_ROOT") if name in os.environ}


def _packages() -> list[str]:
    """Give where the third-party packages are, and nothing of this source."""
    return [path for path in sys.path if path and not (Path(path) / "turnline").exists()]
