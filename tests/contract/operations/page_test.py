"""The page of operations tells the truth: its commands work, its tables name what there is."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import yaml

from chaos.processes.observed import SEEN_SECONDS, dead_letters, finally_
from chaos.processes.topology import FIVE, Kind, Topology, environment, topology
from e2e.process import ADMIN_TOKEN
from e2e.tokens import token_for

ROOT = Path(__file__).absolute().parents[3]
PAGE = (ROOT / "docs/operations/README.md").read_text(encoding="utf-8")
OBSERVABILITY = ROOT / "deploy/compose/observability"
AGENTS = Path(__file__).absolute().parent / "agent.py"
SHELL_SECONDS = 120.0
NOT_RUN = "# not run here"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for named, text in _BLOCK.findall(PAGE) if named == language]


def table(heading: str) -> list[str]:
    """Give the first column of the table below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    return rows[1:]


@pytest.fixture
async def installed(tmp_path: Path) -> AsyncIterator[Topology]:
    """One of each service, and two turns that were given up."""
    short = {"execution": {"queues": {"input": {"max_receive_count": 1}}}}
    async with topology(tmp_path / "installed", short, short_leases=True) as installed:
        installed.agents = AGENTS
        await installed.start_all(*FIVE.kinds)
        [handler] = installed.of(Kind.REQUEST_HANDLER)
        headers = {"authorization": f"Bearer {token_for('ann')}"}
        async with handler.server.client() as client:
            for session in ("f1", "f2"):
                body = {"prompt": "fail", "session_id": session}
                answer = await client.post("/api/v1/chat", json=body, headers=headers)
                assert answer.status_code == 500, answer.text

        async def given_up() -> bool:
            return len(await dead_letters(handler.server)) == 2

        await finally_(given_up, within=SEEN_SECONDS)
        yield installed


@pytest.mark.timeout(280)
async def test_the_commands_work_as_they_stand(installed: Topology, tmp_path: Path) -> None:
    script = "\n".join(["set -euxo pipefail", *blocks("sh")])

    said, complaints, code = await shell(script, tmp_path, variables(installed, tmp_path))

    assert code == 0, said + complaints
    assert '"result":"hello"' in said
    assert "hello again" in said
    assert "redriven: " in said
    assert "purged: " in said
    assert '"code":"turn_cancelled"' in said
    assert ADMIN_TOKEN not in (tmp_path / "settings.txt").read_text(encoding="utf-8")
    json.loads((tmp_path / "schema.json").read_text(encoding="utf-8"))


def variables(installed: Topology, folder: Path) -> dict[str, str]:
    """Give what the page says its commands take from the environment."""
    command = folder / "bin" / "turnline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m turnline.cli.main "$@"\n')
    command.chmod(0o755)
    servers = {kind: installed.of(kind)[0].server for kind in FIVE.kinds}
    return {
        **environment(installed.settings),
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "REST": servers[Kind.REQUEST_HANDLER].url,
        "RUNNER": servers[Kind.RUNNER].url,
        "GATEWAY": servers[Kind.GATEWAY].ws_url,
        "TOKEN": token_for("ann"),
    }


async def shell(script: str, folder: Path, given: Mapping[str, str]) -> tuple[str, str, int]:
    """Run a script; give its output, its errors and its code."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", script),
        cwd=folder,
        env=given,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SHELL_SECONDS):
            said, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode(), complaints.decode(), process.returncode or 0


def test_a_block_is_run_or_says_that_it_is_not() -> None:
    others = [text for text in blocks("") if not text.startswith(NOT_RUN)]

    assert len(blocks("sh")) + len(blocks("")) == PAGE.count("\n```") / 2
    assert others == []


def test_every_alert_has_its_row() -> None:
    groups = yaml.safe_load((OBSERVABILITY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]

    assert table("Act on an alert") == [
        rule["alert"] for group in groups for rule in group["rules"]
    ]


def test_every_panel_of_the_dashboard_has_its_row() -> None:
    dashboard = json.loads((OBSERVABILITY / "grafana/turnline.json").read_text(encoding="utf-8"))
    panels = [panel["title"] for panel in dashboard["panels"] if panel["type"] != "row"]

    assert table("Read the dashboard") == panels


def test_the_chart_alerts_as_compose_does() -> None:
    chart = ROOT / "deploy/helm/turnline/files/alerts.yaml"

    assert chart.read_bytes() == (OBSERVABILITY / "alerts.yaml").read_bytes()
