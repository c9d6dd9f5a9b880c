"""Builds Kubernetes's API server, with etcd in it, where the tests look for it.

    PYTHONPATH=libs:tests python -m helm.build_api_server

takes about six minutes on two cores, more than every run of the tests should; without it the tests
that need a real server are skipped.
"""

import subprocess
import tempfile
from pathlib import Path

KUBERNETES = "v1.34.2"
PROGRAM = Path.home() / ".cache" / "turnline" / "kube-apiserver" / KUBERNETES / "kube-apiserver"
_SOURCE = Path(__file__).parent / "api_server"
_SECONDS = 3600.0
_VERSION = "k8s.io/component-base/version"


def why_not() -> str:
    """Say why there is no server to test against; empty when there is one."""
    if PROGRAM.exists():
        return ""
    return f"no {PROGRAM}; `python -m helm.build_api_server` makes it in about six minutes"


def main() -> None:
    """Build it; the sums of all that Go fetches are checked."""
    _, major, minor = (KUBERNETES.replace("v", ".")).split(".")[:3]
    said = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X {_VERSION}.{name}={value}" for name, value in said.items())
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PROGRAM.parent) as folder:
        made = Path(folder) / PROGRAM.name
        subprocess.run(
            ["go", "build", "-trimpath", "-ldflags", f"-s -w {flags}", "-o", str(made), "."],
            check=True,
            cwd=_SOURCE,
            timeout=_SECONDS,
        )
        made.rename(PROGRAM)


if __name__ == "__main__":
    main()
