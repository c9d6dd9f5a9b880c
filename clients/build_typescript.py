"""Packs the TypeScript client: a tarball, as `npm pack` makes it."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from clients.building import LICENSE, ROOT, generate, run

SOURCES = ROOT / "clients" / "typescript"

NPM_CI = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")


def package(folder: Path) -> Path:
    """Write the tarball into a folder and give its path.

    Raises:
        BuildError: Node.js or npm is missing, or what they were asked to do failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as work:
        sources = Path(work) / "client"
        left_out = shutil.ignore_patterns("tests", "node_modules", "dist")
        shutil.copytree(SOURCES, sources, ignore=left_out)
        shutil.copy(LICENSE, sources)
        run(NPM_CI, sources)
        generate("typescript", sources / "src" / "gen", sources / "node_modules" / ".bin")
        run(["npm", "run", "--silent", "build"], sources)
        packed = run(["npm", "pack", "--silent", f"--pack-destination={folder}"], sources)
    return folder / packed.strip().splitlines()[-1]
