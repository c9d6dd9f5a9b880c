"""The chart, rendered by Helm."""

import copy
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from helm.tools import fetched

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "turnline"
RELEASE = "chat"
NAMESPACE = "agents"
SECONDS = 60.0

Values = Mapping[str, Any]
Object = dict[str, Any]

AGENTS: Values = {"agentRunner": {"image": {"repository": "registry.example/agents", "tag": "v1"}}}
JWT: Values = {
    "settings": {"auth": {"type": "jwt", "jwt": {"jwks_url": "https://idp.example/jwks.json"}}}
}
SOCKETS: Values = {"wsGateway": {"enabled": True}, "pushEndpoint": {"enabled": True}}
EKS: Values = {
    "serviceAccount": {
        "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/turnline"}
    },
    "settings": {
        "execution": {
            "queues": {
                "input": {"url": "https://sqs.eu-west-1.amazonaws.com/123456789012/input.fifo"},
                "output": {"url": "https://sqs.eu-west-1.amazonaws.com/123456789012/output.fifo"},
                "sqs": {"region": "eu-west-1"},
            }
        },
        "session": {"valkey": {"url": "valkeys://cache.example:6379"}},
    },
    "ingress": {"enabled": True, "host": "chat.example"},
}
EXTERNAL_NATS: Values = {
    "nats": {"enabled": False},
    "valkey": {"enabled": False},
    "provisioning": {"by": "job"},
    "secrets": {
        "nats": {"credentialsSecret": "nats-user", "caSecret": "nats-ca"},
        "store": {"existingSecret": "cache", "username": "turnline"},
    },
    "settings": {
        "execution": {
            "queues": {"nats": {"url": "tls://nats-1.example:4222,tls://nats-2.example:4222"}}
        },
        "session": {"valkey": {"url": "valkeys://cache.example:6379"}},
    },
}
EXTERNAL_KAFKA: Values = {
    "nats": {"enabled": False},
    "provisioning": {"by": "job"},
    "secrets": {
        "kafka": {"existingSecret": "kafka", "username": "turnline", "caSecret": "kafka-ca"}
    },
    "settings": {
        "execution": {
            "queues": {
                "type": "kafka",
                "kafka": {
                    "bootstrap_servers": "kafka-1.example:9093,kafka-2.example:9093",
                    "client_config": {"sasl.mechanism": "SCRAM-SHA-512"},
                },
            }
        }
    },
}


def merged(*values: Values) -> dict[str, Any]:
    """Merge values as Helm merges its files: later ones win, blocks are merged."""
    found: dict[str, Any] = {}
    for each in values:
        for key, value in copy.deepcopy(dict(each)).items():
            before = found.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                value = merged(before, value)
            found[key] = value
    return found


def flavour(name: str) -> dict[str, Any]:
    """Read a values file that comes with the chart."""
    loaded: dict[str, Any] = yaml.safe_load((CHART / f"values-{name}.yaml").read_text())
    return loaded


def cases() -> dict[str, Values]:
    """Give the values of every release that is looked at, by name."""
    everything: Values = {
        "networkPolicy": {"defaultDeny": True},
        "monitoring": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "prometheusRule": {"enabled": True},
        },
        "ingress": {"enabled": True, "host": "chat.example", "tlsSecret": "chat-tls"},
        "requestHandler": {"cpuAutoscaling": {"enabled": True}},
    }
    return {
        "defaults": AGENTS,
        "dev": flavour("dev"),
        "dev, its tokens made here": merged(
            flavour("dev"),
            SOCKETS,
            {"settings": {"auth": {"type": "jwt"}}, "secrets": {"jwt": {"generate": True}}},
        ),
        "baremetal": merged(flavour("baremetal"), AGENTS),
        "baremetal, five, all of it": merged(
            flavour("baremetal"), AGENTS, JWT, everything, {"layout": "five"}
        ),
        "baremetal, the guide's model": merged(
            flavour("baremetal"),
            AGENTS,
            {
                "settings": {
                    "execution": {
                        "turn_timeout": 7200,
                        "queues": {"nats": {"partitions": 4, "max_ack_pending": 1}},
                    }
                },
                "autoscaling": {"by": "broker"},
            },
        ),
        "baremetal-kafka": merged(flavour("baremetal-kafka"), AGENTS, JWT, SOCKETS),
        "eks": merged(flavour("eks"), AGENTS, JWT, SOCKETS, EKS),
        "external nats": merged(AGENTS, EXTERNAL_NATS),
        "external kafka": merged(AGENTS, EXTERNAL_KAFKA),
    }


class Refused(Exception):
    """Helm did not take the values; says why."""


@dataclass(frozen=True)
class Release:
    """What Helm made of some values.

    Attributes:
        objects: in the order in which they were rendered.
    """

    objects: Sequence[Object]

    def all(self, kind: str) -> list[Object]:
        """Give the objects of a kind."""
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, name: str) -> Object:
        """Give an object by its name, less the release's."""
        wanted = f"{RELEASE}-turnline-{name}" if name else f"{RELEASE}-turnline"
        (found,) = [each for each in self.all(kind) if each["metadata"]["name"] == wanted]
        return found

    @cached_property
    def parts(self) -> dict[str, Object]:
        """The deployments by component."""
        return {
            each["metadata"]["labels"]["app.kubernetes.io/component"]: each
            for each in self.all("Deployment")
        }

    @property
    def config(self) -> dict[str, Any]:
        """The product's settings."""
        text = self.one("ConfigMap", "")["data"]["config.yaml"]
        loaded: dict[str, Any] = yaml.safe_load(text)
        return loaded


def pod_of(workload: Object) -> dict[str, Any]:
    """Give the pod that a workload makes."""
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def container_of(workload: Object) -> dict[str, Any]:
    """Give the one container of a workload."""
    (container,) = pod_of(workload)["containers"]
    found: dict[str, Any] = container
    return found


def run_helm(*command: str, values: Values | None = None) -> str:
    """Run Helm.

    Raises:
        Refused: it ended otherwise than well.
    """
    given = ["--values", "-"] if values is not None else []
    done = subprocess.run(
        [str(fetched() / "helm" / "helm"), *command, *given],
        capture_output=True,
        input=json.dumps(values) if values is not None else "",
        text=True,
        timeout=SECONDS,
    )
    if done.returncode != 0:
        raise Refused(done.stdout + done.stderr)
    return done.stdout


def render(values: Values, *options: str) -> Release:
    """Render the chart.

    Raises:
        Refused: schema or chart do not take the values.
    """
    command = ("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *options)
    text = run_helm(*command, values=values)
    return Release(list(_objects(text)))


def _objects(text: str) -> Iterator[Object]:
    yield from (each for each in yaml.safe_load_all(text) if each)
