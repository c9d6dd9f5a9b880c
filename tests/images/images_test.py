"""What a platform engineer is told of the images is so."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from images.build import PYTHON, SERVICES, image_of
from images.engine import DockerEngine, DockerError

HERE = Path(__file__).absolute().parent
MOST_BYTES = 150_000_000
HEALTHY_SECONDS = 60.0
SINGLE = ("serve", "all", "--agents", "/agents/slow_agent.py")
# What nobody may lack and nobody else may have.
OWN = {
    "gateway": "turnline.gateway",
    "push_endpoint": "turnline.push_endpoint",
    "request_handler": "turnline.request_handler",
    "responder": "turnline.responder",
    "runner": "turnline.runner",
    "scaler": "turnline.scaler",
    "turnline": "turnline.cli",
}
# The first test waits for the images.
pytestmark = pytest.mark.timeout(400)
ALL = pytest.mark.parametrize("service", SERVICES)


@ALL
def test_an_image_is_named_by_labels_and_runs_as_a_fixed_user_that_is_not_root(
    images: DockerEngine, service: str
) -> None:
    config = _inspect(images, image_of(service))["Config"]

    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["/opt/turnline/pex"]
    assert config["Labels"]["org.opencontainers.image.title"] == f"turnline {service}"
    assert "org.opencontainers.image.version" in config["Labels"]


@ALL
def test_an_image_is_less_than_150_mb_over_its_base(
    images: DockerEngine, base: str, service: str
) -> None:
    over = _inspect(images, image_of(service))["Size"] - _inspect(images, base)["Size"]
    print(f"{image_of(service)}: {over / 1e6:.0f} MB over its base")

    assert over < MOST_BYTES


@ALL
def test_an_image_holds_its_own_service_and_what_that_needs(
    images: DockerEngine, service: str
) -> None:
    code = (
        "import pkgutil, turnline as t; print(*(m.name for m in pkgutil.iter_modules(t.__path__)))"
    )
    found = _python(images, image_of(service), code).split()

    rooms = {name.removeprefix("turnline.") for name in OWN.values()}
    expected = rooms if service == "turnline" else {OWN[service].removeprefix("turnline.")}
    assert rooms & set(found) == expected
    assert "testing" not in found


def test_there_is_no_shell_in_the_base_on_which_all_this_is_tried(
    images: DockerEngine, base: str
) -> None:
    with pytest.raises(DockerError, match="executable file not found"):
        images.docker("run", "--rm", "--entrypoint", "sh", base, "-c", "true")


@ALL
def test_the_health_check_fails_where_nothing_serves(images: DockerEngine, service: str) -> None:
    _, *command = _inspect(images, image_of(service))["Config"]["Healthcheck"]["Test"]

    with pytest.raises(DockerError, match="refused"):
        images.docker(
            *("run", "--rm", "--network", "none", "--entrypoint", command[0]),
            *(image_of(service), *command[1:]),
        )


def test_it_serves_from_a_read_only_root_and_is_found_healthy(images: DockerEngine) -> None:
    with _running(images) as (name, url):
        answer = httpx.post(f"{url}/api/v1/chat", json=_asking("hello"), timeout=30)
        _wait_healthy(images, name)
        user = images.docker("top", name, "-o", "uid,pid,args").splitlines()[1].split()

    assert answer.json()["result"] == "begun and ended: hello"
    assert user[0] == "10001"
    assert user[-len(SINGLE) - 1 :] == ["/opt/turnline/pex", *SINGLE]


def test_sigterm_reaches_the_process_which_finishes_the_turn_under_way(
    images: DockerEngine,
) -> None:
    answers: list[httpx.Response] = []
    with _running(images) as (name, url):
        begun = threading.Event()
        asking = threading.Thread(target=lambda: answers.append(_streamed(url, begun)))
        asking.start()
        assert begun.wait(30)

        images.docker("stop", "--time", "30", name)
        asking.join()
        code = _inspect(images, name)["State"]["ExitCode"]

    assert "and ended: drain me" in answers[0].text
    assert code == 0


def test_an_agent_is_put_over_the_runners_image_as_the_readme_says(
    images: DockerEngine, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_bytes((HERE / "slow_agent.py").read_bytes())
    (tmp_path / "Dockerfile").write_text(_from_the_readme())
    images.docker("build", "--tag", "my-runner", str(tmp_path))

    # It has no queue to reach, and says so as one who has found the agent.
    with pytest.raises(DockerError) as refused:
        images.docker("run", "--rm", "--network", "none", "my-runner")

    assert "execution.queues.type" in str(refused.value)


@contextmanager
def _running(engine: DockerEngine) -> Iterator[tuple[str, str]]:
    """Run the whole pipeline as one container, read-only and without any other right."""
    name = engine.docker(
        *("run", "--detach", "--read-only", "--cap-drop", "ALL"),
        *(
            "--security-opt",
            "no-new-privileges",
            "--health-interval",
            "1s",
            "--publish",
            "127.0.0.1::8000",
        ),
        *("--volume", f"{HERE}:/agents:ro", image_of("turnline"), *SINGLE),
    )
    try:
        published = int(engine.docker("port", name, "8000").rpartition(":")[2])
        with engine.port_of(published) as port:
            url = f"http://127.0.0.1:{port}"
            _wait_ready(engine, name, url)
            yield name, url
    finally:
        engine.docker("rm", "--force", name)


def _wait_ready(engine: DockerEngine, name: str, url: str) -> None:
    for _ in _looks():
        try:
            if httpx.get(f"{url}/ready", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
    raise AssertionError(engine.docker("logs", name))


def _wait_healthy(engine: DockerEngine, name: str) -> None:
    for _ in _looks():
        if _inspect(engine, name)["State"]["Health"]["Status"] == "healthy":
            return
    raise AssertionError(_inspect(engine, name)["State"])


def _looks() -> Iterator[int]:
    """Give one turn of a loop each fifth of a second, for as long as a start may take."""
    pause = threading.Event()
    for look in range(int(HEALTHY_SECONDS * 5)):
        yield look
        pause.wait(0.2)


def _streamed(url: str, begun: threading.Event) -> httpx.Response:
    headers = {"accept": "text/event-stream"}
    with httpx.stream(
        "POST", f"{url}/api/v1/chat", json=_asking("drain me"), headers=headers, timeout=60
    ) as answer:
        text = []
        for line in answer.iter_lines():
            text.append(line)
            if "begun" in line:
                begun.set()
        return httpx.Response(answer.status_code, text="\n".join(text))


def _asking(prompt: str) -> dict[str, str]:
    return {"prompt": prompt, "session_id": "s1"}


def _python(engine: DockerEngine, image: str, code: str) -> str:
    return engine.docker("run", "--rm", "--entrypoint", PYTHON, image, "-Ic", code)


def _inspect(engine: DockerEngine, name: str) -> dict[str, Any]:
    [found] = json.loads(engine.docker("inspect", name))
    return dict(found)


def _from_the_readme() -> str:
    """Give the Dockerfile that the README shows."""
    text = (HERE.parents[1] / "deploy" / "docker" / "README.md").read_text(encoding="utf-8")
    return text.split("```dockerfile\n")[1].split("```")[0]
