"""Images of the brokers, the store and Prometheus, for machines that reach no image registry.

They stand for the public ones by name alone: programs and jars are those that the other tests use,
and each takes the arguments, variables and health check that deploy/compose gives the public one.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from images.debian import JAVA, debian_image
from images.engine import DockerEngine
from turnline.testing.servers.kafka_jars import kafka_jars
from turnline.testing.servers.maven_jars import MavenJars
from turnline.testing.servers.nats import find_nats_server
from turnline.testing.servers.valkey import find_valkey

_TOOLS = ("busybox-static", "redis-tools")
# What the health checks call, as the public images have it.
_LINKED = """FROM {tools}
RUN ["/bin/busybox", "ln", "-s", "/bin/busybox", "/usr/bin/wget"]
RUN ["/bin/busybox", "ln", "-s", "redis-cli", "/usr/bin/valkey-cli"]
"""
_NATS = """FROM {tools}
COPY nats-server /usr/bin/
ENTRYPOINT ["nats-server"]
"""
_VALKEY = """FROM {tools}
COPY valkey-server /usr/bin/
WORKDIR /data
"""
_PROMETHEUS = """FROM {debian}
RUN ["/bin/busybox", "ln", "-s", "/bin/busybox", "/usr/bin/wget"]
WORKDIR /prometheus
ENTRYPOINT ["prometheus"]
"""
# What the public image does: its own program makes files of the variables, formats and starts.
_KAFKA_START = """#!/bin/busybox sh
set -e
java="/usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
export CLUSTER_ID="${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}"
$java -cp "/jars/*" kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config
exec $java $KAFKA_HEAP_OPTS -cp "/jars/*" kafka.Kafka /opt/kafka/config/server.properties
"""
_KAFKA = """FROM {java}
COPY jars /jars
COPY start /start
RUN ["/bin/busybox", "mkdir", "-p", "/etc/kafka/docker", "/mnt/shared/config", "/opt/kafka/config"]
RUN ["/bin/busybox", "touch", "/etc/kafka/docker/server.properties", \
"/etc/kafka/docker/log4j2.yaml", "/etc/kafka/docker/tools-log4j2.yaml"]
COPY nc /usr/bin/
ENTRYPOINT ["/start"]
"""
# Debian's own has no `-z`: say nothing, and Kafka hangs up.
_NC = """#!/bin/busybox sh
exec /bin/busybox nc -w 2 "$2" "$3" </dev/null
"""
_ELASTICMQ = """FROM {java}
COPY jars /jars
COPY server.conf /
ENTRYPOINT ["/usr/lib/jvm/java-17-openjdk-amd64/bin/java", "-XX:+UseSerialGC", \
"-XX:TieredStopAtLevel=1", "-Xmx128m", "-Dconfig.file=/server.conf", "-cp", "/jars/*", \
"org.elasticmq.server.Main"]
"""
_ELASTICMQ_CONFIG = """include classpath("application.conf")
node-address { protocol = http, host = "elasticmq", port = 9324, context-path = "" }
rest-sqs { enabled = true, bind-hostname = "0.0.0.0", bind-port = 9324, sqs-limits = strict }
rest-stats { enabled = false }
"""


def store_and_nats(engine: DockerEngine) -> Mapping[str, str]:
    """Build images of Valkey and NATS; gives the variables that name them."""
    tools = debian_image(engine, "turnline-test/tools", _TOOLS)
    valkey = find_valkey()
    if valkey is None:
        pytest.skip("no Valkey server to make an image of")
    linked = _build(engine, "linked", _LINKED.format(tools=tools))
    return {
        "VALKEY_IMAGE": _build(engine, "valkey", _VALKEY.format(tools=linked), valkey),
        "NATS_IMAGE": _build(engine, "nats", _NATS.format(tools=linked), Path(find_nats_server())),
    }


def kafka(engine: DockerEngine) -> Mapping[str, str]:
    """Build an image of Kafka; gives the variable that names it."""
    with tempfile.TemporaryDirectory(prefix="turnline-kafka-") as folder:
        start, nc = Path(folder) / "start", Path(folder) / "nc"
        for script, text in ((start, _KAFKA_START), (nc, _NC)):
            script.write_text(text)
            script.chmod(0o755)
        built = _build(engine, "kafka", _KAFKA.format(java=_java(engine)), start, nc, kafka_jars())
    return {"KAFKA_IMAGE": built}


def elasticmq(engine: DockerEngine) -> Mapping[str, str]:
    """Build an image of ElasticMQ; gives the variable that names it."""
    jars = MavenJars("elasticmq", "elasticmq-pom.xml").folder()
    with tempfile.TemporaryDirectory(prefix="turnline-elasticmq-") as folder:
        config = Path(folder) / "server.conf"
        config.write_text(_ELASTICMQ_CONFIG)
        dockerfile = _ELASTICMQ.format(java=_java(engine))
        return {"ELASTICMQ_IMAGE": _build(engine, "elasticmq", dockerfile, config, jars)}


def _java(engine: DockerEngine) -> str:
    return debian_image(engine, "turnline-test/java", (*JAVA, "busybox-static"))


def prometheus(engine: DockerEngine) -> Mapping[str, str]:
    """Build an image of Prometheus; gives the variable that names it."""
    debian = debian_image(engine, "turnline-test/debian", ("prometheus", "busybox-static"))
    built = _build(engine, "prometheus", _PROMETHEUS.format(debian=debian))
    return {"PROMETHEUS_IMAGE": built}


def _build(engine: DockerEngine, name: str, dockerfile: str, *files: Path) -> str:
    with tempfile.TemporaryDirectory(prefix="turnline-image-") as context:
        (Path(context) / "Dockerfile").write_text(dockerfile)
        for file in files:
            copy = shutil.copytree if file.is_dir() else shutil.copy
            copy(file, Path(context) / file.name)
        engine.docker("build", "--tag", f"turnline-test/{name}", context)
    return f"turnline-test/{name}"
