"""The jars of a Kafka broker, at the versions that `kafka-pom.xml` pins."""

from turnline.testing.servers.maven_jars import MavenJars, find_java

__all__ = ["cache_folder", "find_java", "kafka_jars", "locked"]

_JARS = MavenJars("kafka", "kafka-pom.xml")

kafka_jars = _JARS.folder
cache_folder = _JARS.cache_folder
locked = _JARS.locked
