"""A real API server with the operators' definitions: takes and judges objects, and runs none."""

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helm.build_api_server import PROGRAM
from helm.chart import CHART, Refused, Values
from helm.published import CRDS, THIRD_PARTY
from helm.tools import fetched
from turnline.testing.servers.process import end, free_ports

TOKEN = "only-for-this-test"
START_SECONDS = 120.0
COMMAND_SECONDS = 120.0
STOP_SECONDS = 30.0


class Cluster:
    """An API server that is up."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def kubectl(self, *command: str) -> str:
        """Run kubectl.

        Raises:
            Refused: it ended otherwise than well.
        """
        return self._run("kubectl/kubectl", *command)

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """Give an object as it is held."""
        found = self.kubectl("get", kind, name, "--namespace", namespace, "--output", "json")
        loaded: dict[str, Any] = json.loads(found)
        return loaded

    def helm(self, *command: str, values: Values | None = None) -> str:
        """Run Helm.

        Raises:
            Refused: it ended otherwise than well.
        """
        return self._run("helm/helm", *command, values=values)

    def install(self, release: str, namespace: str, values: Values) -> str:
        """Install or upgrade the chart."""
        return self.helm(
            *("upgrade", "--install", release, str(CHART), "--namespace", namespace),
            *("--create-namespace", "--values", "-"),
            values=values,
        )

    def is_ready(self) -> bool:
        """Say whether it answers and has started."""
        try:
            return self.kubectl("get", "--raw", "/readyz") == "ok"
        except Refused:
            return False

    def _run(self, tool: str, *command: str, values: Values | None = None) -> str:
        done = subprocess.run(
            [str(fetched() / tool), *command, "--kubeconfig", str(self._kubeconfig)],
            capture_output=True,
            input=json.dumps(values) if values is not None else "",
            text=True,
            timeout=COMMAND_SECONDS,
        )
        if done.returncode != 0:
            raise Refused(done.stdout + done.stderr)
        return done.stdout


@contextmanager
def running() -> Iterator[Cluster]:
    """Run etcd and the server, with every definition that a chart's object may need."""
    with tempfile.TemporaryDirectory(prefix="turnline-kubernetes-") as name:
        folder = Path(name)
        client, peer, port = free_ports(3)
        store = f"http://127.0.0.1:{client}"
        cluster = Cluster(_write_kubeconfig(folder, port))
        with (
            _process(folder, *_etcd(folder, store, peer)),
            _process(folder, *_server(folder, store, port)),
        ):
            _wait_for(cluster)
            for file in CRDS:
                cluster.kubectl("create", "--filename", str(THIRD_PARTY / file))
            cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
            yield cluster


def _wait_for(cluster: Cluster) -> None:
    ends = time.monotonic() + START_SECONDS
    # Each look is a process of its own, which takes its time.
    while not cluster.is_ready():
        assert time.monotonic() < ends, "the API server did not start"


def _etcd(folder: Path, store: str, peer: int) -> list[str]:
    return [
        *("etcd", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync"),
        *("--listen-client-urls", store, "--advertise-client-urls", store),
        *("--listen-peer-urls", f"http://127.0.0.1:{peer}"),
    ]


def _server(folder: Path, store: str, port: int) -> list[str]:
    key, tokens = folder / "key.pem", folder / "tokens.csv"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    tokens.write_text(f'{TOKEN},admin,1,"system:masters"\n')
    return [
        *("--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", str(port)),
        *("--cert-dir", str(folder / "certificates"), "--token-auth-file", str(tokens)),
        *("--service-account-key-file", str(key), "--service-account-signing-key-file", str(key)),
        *("--service-account-issuer", "https://turnline.example"),
        *("--service-cluster-ip-range", "10.0.0.0/16", "--authorization-mode", "AlwaysAllow"),
    ]


def _write_kubeconfig(folder: Path, port: int) -> Path:
    server = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    file = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": server}],
        "users": [{"name": "test", "user": {"token": TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    file.write_text(json.dumps(content))
    return file


@contextmanager
def _process(folder: Path, *arguments: str) -> Iterator[None]:
    with (folder / f"{arguments[0].strip('-')}.log").open("wb") as log:
        process = subprocess.Popen([str(PROGRAM), *arguments], stdout=log, stderr=log, cwd=folder)
        try:
            yield
        finally:
            end(process, signal.SIGTERM, within=STOP_SECONDS)
