"""The runner as a process of its own: a broker and a session store, and routes for operators.

Read top to bottom: what is opened first is closed last.
"""

from turnline.agent import AgentRegistry
from turnline.frontdoor import admin_routes, web_app
from turnline.hosting import (
    LeaseKeeper,
    Parts,
    Standalone,
    WebServer,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.runner.wiring import runner_loop
from turnline.telemetry import watch_loop_lag


async def serve_runner(process: Standalone, *, agents: AgentRegistry) -> None:
    """Run turns until the lifecycle drains, then finish or hand back within the grace period.

    Raises:
        ConfigurationError: the port is taken.
    """
    settings, backends, lifecycle = process.settings, process.backends, process.lifecycle
    agents.threads.resize(settings.execution.sync_agent_threads)
    keeper = LeaseKeeper(backends.metrics)
    runner = runner_loop(settings, backends, keeper, agents=agents)
    alive = {"runner": lambda: runner.reading}
    routes = [
        *operator_routes(settings, backends, lifecycle, alive=alive),
        *admin_routes(settings, backends.transport),
    ]
    app = web_app(routes)
    web = WebServer(app, web_options(settings))
    process.started(web.port)
    parts = Parts(
        web=web,
        runner=runner,
        background=[keeper.run, lambda: watch_loop_lag(backends.metrics, backends.clock)],
    )
    await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)
