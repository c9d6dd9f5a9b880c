"""Packs the Go client: a folder that is a module proxy (`GOPROXY=file://FOLDER`), one version."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from clients.building import LICENSE, ROOT, VERSION, generate, run

SOURCES = ROOT / "clients" / "go"
MODULE = "turnline.dev/client"
TOOLS = (
    "google.golang.org/protobuf/cmd/protoc-gen-go",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
)

_VERSION = f"v{VERSION}"


def package(folder: Path) -> Path:
    """Write the module and give the folder; what is in it besides is left alone.

    Raises:
        BuildError: Go is missing, or what it was asked to do failed.
    """
    with TemporaryDirectory() as work:
        sources = Path(work) / "client"
        shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("tests", "tools"))
        shutil.copy(LICENSE, sources)
        write_protocol(sources)
        run(["go", "vet", "./..."], sources)
        _pack(sources, folder / MODULE / "@v")
    return folder


def write_protocol(module: Path) -> None:
    """Write the Go code of `proto/` into the folder of a module, as its package `turnline/v1`.

    Raises:
        BuildError: Go is missing, or what it was asked to do failed.
    """
    with TemporaryDirectory() as work:
        run(["go", "build", "-o", f"{work}/", *TOOLS], SOURCES / "tools")
        generate("go", module, Path(work))


def _pack(sources: Path, versions: Path) -> None:
    versions.mkdir(parents=True, exist_ok=True)
    (versions / "list").write_text(f"{_VERSION}\n")
    (versions / f"{_VERSION}.info").write_text(json.dumps({"Version": _VERSION}))
    shutil.copy(sources / "go.mod", versions / f"{_VERSION}.mod")
    with ZipFile(versions / f"{_VERSION}.zip", "w", ZIP_DEFLATED) as packed:
        for path in sorted(path for path in sources.rglob("*") if path.is_file()):
            # Of one time, so that the same sources make the same bytes.
            entry = ZipInfo(f"{MODULE}@{_VERSION}/{path.relative_to(sources)}")
            entry.compress_type = ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())
