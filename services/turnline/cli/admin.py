"""`turnline queues` and `turnline dlq`: an operator's view of queues, over the admin routes."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn
from urllib.parse import quote

import click
import httpx

TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class AdminClient:
    """Calls the admin routes of one process."""

    url: str
    token: str

    def call(self, method: str, path: str, **params: str | int) -> dict[str, Any]:
        """Call a route and give its JSON answer; a failure ends the command with its reason."""
        try:
            answer = httpx.request(
                method,
                self.url.rstrip("/") + path,
                params=params,
                headers={"authorization": f"Bearer {self.token}"},
                timeout=TIMEOUT_SECONDS,
            )
        except httpx.HTTPError as error:
            _fail(f"cannot reach {self.url}: {error}")
        body = _json(answer)
        if answer.is_error:
            detail = body.get("detail")
            reason = detail.get("error") if isinstance(detail, dict) else None
            if reason == "Not Found":  # of the route itself; a letter's is told in other words
                reason = "no admin routes here; give the URL of a request handler or a runner"
            _fail(f"{answer.status_code}: {reason or 'the server refused'}")
        return body


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        _fail(f"{answer.status_code}: not an answer of Turnline; is the URL right?")
    return body


def _fail(message: str) -> NoReturn:
    raise click.ClickException(message)


@click.group()
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="Base URL.")
@click.option("--token", envvar="AK_API__ADMIN_TOKEN", default="", help="api.admin_token.")
@click.pass_context
def dlq(context: click.Context, url: str, token: str) -> None:
    """List, show, redrive and purge dead letters."""
    context.obj = AdminClient(url, token)


@click.command()
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="Base URL.")
@click.option("--token", envvar="AK_API__ADMIN_TOKEN", default="", help="api.admin_token.")
def queues(url: str, token: str) -> None:
    """Show how much waits, runs and is dead on each queue."""
    stats = AdminClient(url, token).call("GET", "/admin/queues")
    click.echo(f"{'queue':8}{'waiting':>9}{'in flight':>11}{'dead':>6}{'oldest':>10}")
    for name, row in stats.items():
        age = f"{row['oldest_age_seconds']:.1f} s"
        click.echo(f"{name:8}{row['waiting']:>9}{row['in_flight']:>11}{row['dead']:>6}{age:>10}")


_queue_option = click.option(
    "--queue", type=click.Choice(["input", "output"]), default="input", show_default=True
)


@dlq.command("list")
@_queue_option
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000))
@click.option("--after", default="", help="Start behind this id.")
@click.pass_obj
def list_letters(client: AdminClient, queue: str, limit: int, after: str) -> None:
    """List dead letters, oldest first."""
    letters = client.call("GET", f"/admin/dlq/{queue}", limit=limit, after=after)["letters"]
    if not letters:
        click.echo(f"no dead letters on {queue}")
    for letter in letters:
        at = datetime.fromtimestamp(letter["at"], UTC).isoformat(timespec="seconds")
        ids = f"request {letter['request_id']} session {letter['session_id']}"
        click.echo(f"{letter['id']}  {at}  attempt {letter['attempt']}  {ids}")
        click.echo(f"    {letter['reason']}")


@dlq.command()
@_queue_option
@click.argument("letter_id")
@click.pass_obj
def show(client: AdminClient, queue: str, letter_id: str) -> None:
    """Show one dead letter, its bytes included."""
    letter = client.call("GET", _letter_path(queue, letter_id))
    raw = base64.b64decode(letter.pop("raw"))
    click.echo(json.dumps(letter, indent=2))
    click.echo(f"raw: {raw!r}")


@dlq.command()
@_queue_option
@click.argument("letter_id")
@click.pass_obj
def redrive(client: AdminClient, queue: str, letter_id: str) -> None:
    """Put one dead letter back on its queue, as if never tried."""
    client.call("POST", f"{_letter_path(queue, letter_id)}/redrive")
    click.echo(f"redriven: {letter_id}")


@dlq.command()
@_queue_option
@click.argument("letter_id", required=False)
@click.option("--all", "everything", is_flag=True, help="Delete all dead letters of the queue.")
@click.pass_obj
def purge(client: AdminClient, queue: str, letter_id: str | None, *, everything: bool) -> None:
    """Delete one dead letter, or all of a queue with --all."""
    if (letter_id is None) != everything:
        raise click.UsageError("give either a LETTER_ID or --all")
    path = _letter_path(queue, letter_id) if letter_id else f"/admin/dlq/{queue}"
    answer = client.call("DELETE", path)
    click.echo(f"purged: {answer['purged']}")


def _letter_path(queue: str, letter_id: str) -> str:
    return f"/admin/dlq/{queue}/{quote(letter_id, safe='')}"
