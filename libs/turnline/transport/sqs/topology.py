"""The queues a transport needs, as data.  Pure: knows settings, asks no server.

Per queue a FIFO queue and one of its dead letters, which is the target of its redrive policy.
"""

import json
from collections.abc import Mapping

from turnline.transport.sqs.options import MOST_BYTES, QueueOptions

REDRIVE = "RedrivePolicy"
# Two weeks, AWS's longest: somebody has to find the time to look.
DEAD_SECONDS = 14 * 24 * 3600
# Deliveries beyond the attempts, for those that start none: a process that stops hands back.
# SQS counts them, and what it gives up by itself nobody answers (ADR 0012).
SPARE_DELIVERIES = 96
# Without these a queue takes 300 calls a second in all; with them each group has its own limit.
_BY_GROUP = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


def dead_wanted() -> dict[str, str]:
    """Give the attributes of a queue of dead letters."""
    return {"FifoQueue": "true", "MessageRetentionPeriod": str(DEAD_SECONDS), **_BY_GROUP}


def work_wanted(queue: QueueOptions, dead_arn: str) -> dict[str, str]:
    """Give the attributes of a queue whose dead letters lie in the queue of that ARN."""
    most = min(1000, queue.max_receive_count + 1 + SPARE_DELIVERIES)
    policy = {"deadLetterTargetArn": dead_arn, "maxReceiveCount": str(most)}
    return {
        "FifoQueue": "true",
        "MaximumMessageSize": str(MOST_BYTES),
        **_BY_GROUP,
        REDRIVE: json.dumps(policy),
    }


def dead_url_of(queue: QueueOptions, attributes: Mapping[str, str]) -> str:
    """Give the URL of the dead letters' queue: the policy's target, or the one by our rule.

    Args:
        attributes: those of the queue itself, empty when they could not be read.
    """
    base, _, _ = queue.url.rpartition("/")
    policy = json.loads(attributes.get(REDRIVE, "{}"))
    arn = str(policy.get("deadLetterTargetArn", ""))
    if not arn:
        return f"{base}/{queue.dead_name}"
    account, name = arn.split(":")[-2:]
    host, _, _ = base.rpartition("/")
    return f"{host}/{account}/{name}"
