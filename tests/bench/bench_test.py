"""The bench itself works: a small run of a case against a real server gives its figures."""

import asyncio

import pytest

from bench.agent import read_directives
from bench.cases import CASES, Case, idle_sockets, percentile, rest_latency
from bench.run import conditions, machine, median_of
from bench.server import running, turnline_command


def test_directives_are_read_from_the_prompt() -> None:
    assert read_directives("sleep=1 chunks=3 hello unknown=4") == {"sleep": 1.0, "chunks": 3.0}


def test_percentiles_and_medians() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert median_of([{"x": 1.0}, {"x": 3.0}, {"x": 2.0}]) == {"x": 2.0}


def test_cases_have_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_figures_come_with_the_machine_the_durability_and_the_payload() -> None:
    assert {"cpus", "memory_mib", "python", "system", "load", "durability"} == set(machine())
    assert all(conditions(case)["payload"] for case in CASES)


async def test_a_case_runs_against_a_real_server() -> None:
    async with running(turnline_command(), {"AK_LOGGING__AK__LEVEL": "WARNING"}) as server:
        figures = await rest_latency(server)

    assert set(figures) == {"p50_ms", "p99_ms", "ready_s"}
    assert all(value > 0 for value in figures.values())


async def test_a_server_that_does_not_start_ends_the_run_at_once() -> None:
    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match="exit code 78"):
            async with running(turnline_command(), {"AK_EXECUTION__MODE": "no such mode"}):
                pass


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_settings_of_every_case_let_a_server_start(case: Case) -> None:
    environ = {"AK_EXECUTION__MODE": case.mode, **dict(case.environ)}
    async with running(turnline_command(), environ, health="/ready") as server:
        assert server.rss_kib() > 0


async def test_an_idle_socket_costs_at_most_25_kib() -> None:
    environ = {"AK_LOGGING__AK__LEVEL": "WARNING", "BENCH_SOCKETS": "1"}
    async with running(turnline_command(), environ, health="/ready") as server:
        figures = await idle_sockets(server, 1000)

    assert 0 < figures["kib_per_socket"] <= 25
