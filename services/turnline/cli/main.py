"""The `turnline` command: one module a subcommand; this one only lists them."""

import click

from turnline.cli.admin import dlq, queues
from turnline.cli.chat import chat
from turnline.cli.config import config
from turnline.cli.dev import dev
from turnline.cli.provision import provision
from turnline.cli.serve import serve


@click.group()
def main() -> None:
    """Run chat-agent turns through a queue pipeline."""


for command in (dev, serve, chat, queues, dlq, provision, config):
    main.add_command(command)


if __name__ == "__main__":
    main()
