"""Makes queues and tables as `turnline provision` does; on AWS they are Terraform's to make."""

from pathlib import Path

from aws_local.emulators import REGION
from aws_local.environments import Variables
from turnline.config import load_settings
from turnline.protocol.clock import SystemClock
from turnline.store.registry import open_provisioners
from turnline.transport.registry import open_provisioner

# Of this process, which has no variables of AWS.
_REGIONS = {
    "AK_EXECUTION__QUEUES__SQS__REGION": REGION,
    "AK_EXECUTION__RESPONSE_STORE__DYNAMODB__REGION": REGION,
    "AK_SESSION__DYNAMODB__REGION": REGION,
}


async def provision(variables: Variables, folder: Path) -> None:
    """Make what a service with these variables needs.

    Args:
        folder: where it would run; its `config.yaml` counts, if there is one.
    """
    settings = load_settings(environ={**variables, **_REGIONS}, cwd=folder).settings
    clock = SystemClock()
    queues = open_provisioner(settings, clock)
    for provisioner in [*([] if queues is None else [queues]), *open_provisioners(settings, clock)]:
        async with provisioner:
            await provisioner.apply()
