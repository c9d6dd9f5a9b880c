"""The queues as a CloudFormation template.  Pure.

`AWS::SQS::Queue`; property names checked on 2026-11-30.
"""

import json

import yaml

from turnline.transport.sqs.options import QueueOptions, SqsOptions
from turnline.transport.sqs.topology import REDRIVE, dead_wanted, work_wanted

_TYPE = "AWS::SQS::Queue"


def manifests_of(options: SqsOptions) -> str:
    """Write all queues as one YAML text."""
    resources: dict[str, object] = {}
    for queue in options.queues:
        resources |= _resources(queue)
    return yaml.safe_dump(
        {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}, sort_keys=False
    )


def _resources(queue: QueueOptions) -> dict[str, object]:
    title = queue.name.capitalize()
    dead, work = f"{title}DeadLetters", f"{title}Queue"
    properties = _typed(work_wanted(queue, ""))
    most = json.loads(work_wanted(queue, "")[REDRIVE])["maxReceiveCount"]
    target = {"Fn::GetAtt": [dead, "Arn"]}
    properties[REDRIVE] = {"deadLetterTargetArn": target, "maxReceiveCount": int(most)}
    return {
        dead: {
            "Type": _TYPE,
            "Properties": {"QueueName": queue.dead_name, **_typed(dead_wanted())},
        },
        work: {"Type": _TYPE, "Properties": {"QueueName": queue.queue_name, **properties}},
    }


def _typed(attributes: dict[str, str]) -> dict[str, object]:
    """Give attributes in the types of a template."""
    return {
        name: True if value == "true" else int(value) if value.isdigit() else value
        for name, value in attributes.items()
    }
