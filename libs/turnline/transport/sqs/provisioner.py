"""The queues of the SQS transport for whoever runs it; see `turnline.config.provisioning`."""

from collections.abc import Sequence
from typing import Self

from turnline.awssdk import AwsError, refusal
from turnline.config import Settings
from turnline.config.provisioning import Change
from turnline.protocol.clock import Clock
from turnline.transport.sqs import provision
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.manifests import manifests_of
from turnline.transport.sqs.options import SqsOptions, options_from


class SqsProvisioner:
    """Queues: what is missing, making it, and writing it down."""

    def __init__(self, options: SqsOptions, clock: Clock) -> None:
        self._options = options
        self._api = SqsApi(options.aws, clock, seconds=options.request_timeout)

    async def __aenter__(self) -> Self:
        try:
            await self._api.open()
        except AwsError as error:
            setting = "execution.queues.sqs.region"
            raise refusal(error, doing="make a client of SQS", setting=setting) from error
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._api.close()

    async def plan(self) -> Sequence[Change]:
        """Give what is missing or differs."""
        return await provision.plan(self._api, self._options)

    async def apply(self) -> Sequence[Change]:
        """Create and update; give what was done."""
        return await provision.apply(self._api, self._options)

    def manifests(self) -> str:
        """Give the queues as a CloudFormation template."""
        return manifests_of(self._options)


def open_provisioner(settings: Settings, clock: Clock) -> SqsProvisioner:
    """Make the provisioner for `execution.queues.sqs`; enter it to connect."""
    return SqsProvisioner(options_from(settings), clock)
