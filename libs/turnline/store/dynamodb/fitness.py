"""Whether a table is what a store needs, and which of its faults can be mended.  Pure.

Takes what DescribeTable and DescribeTimeToLive say; start-up refuses what provisioning mends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from turnline.store.dynamodb.items import EXPIRY
from turnline.store.dynamodb.schema import TableSchema

_USABLE = ("ACTIVE", "UPDATING")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """One thing that is wrong with a table.

    Attributes:
        what: a clause after the table's name, with the fix.
        index: the index to add, if that mends it; empty: it does not.
        ttl: whether switching TTL on mends it.
    """

    what: str
    index: str = ""
    ttl: bool = False

    @property
    def mendable(self) -> bool:
        """Whether it can be put right without touching what the table holds."""
        return self.ttl or bool(self.index)


def table_faults(table: Mapping[str, Any], schema: TableSchema) -> Iterator[Unfit]:
    """List what is wrong with a table's state, keys and indexes (`Table` of DescribeTable)."""
    if table["TableStatus"] not in _USABLE:
        yield Unfit(what=f"is {table['TableStatus']}; wait until it is ACTIVE, or mend it")
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    found = _keys(table["KeySchema"])
    wanted = {"HASH": schema.partition_key, "RANGE": schema.sort_key}
    if found != wanted:
        has = " and ".join(f"{name} ({kind})" for kind, name in sorted(found.items()))
        yield Unfit(
            what=f"has the key {has}, which cannot be changed; make a table with the partition key "
            f"{schema.partition_key} and the sort key {schema.sort_key}, both strings"
        )
    for key in sorted({*found.values(), *schema.indexes.values()} & types.keys()):
        if types[key] != "S":
            yield Unfit(
                what=f"has {key} of type {types[key]}, which cannot be changed; "
                "make one with type S"
            )
    yield from _index_faults(table, schema)


def _index_faults(table: Mapping[str, Any], schema: TableSchema) -> Iterator[Unfit]:
    indexes = {
        index["IndexName"]: _keys(index["KeySchema"])
        for index in table.get("GlobalSecondaryIndexes") or ()
    }
    for index, key in schema.indexes.items():
        if indexes.get(index) == {"HASH": key}:
            continue
        fix = "add it" if index not in indexes else "remove the one of that name, and add it"
        yield Unfit(
            what=f"has no global secondary index {index} with the partition key {key} alone; {fix}",
            index="" if index in indexes else index,
        )


def ttl_faults(lifetime: Mapping[str, Any]) -> Iterator[Unfit]:
    """List what is wrong with a table's TTL (`TimeToLiveDescription`)."""
    attribute = lifetime.get("AttributeName")
    if lifetime["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
        yield Unfit(
            what=f"has no TTL, so that it grows for ever; enable TTL on the attribute {EXPIRY}",
            ttl=True,
        )
    elif attribute != EXPIRY:
        yield Unfit(
            what=f"has its TTL on the attribute {attribute}; disable it, and enable it on {EXPIRY}"
        )


def _keys(key_schema: Any) -> Mapping[str, str]:  # noqa: ANN401  # of the client's own types
    return {each["KeyType"]: each["AttributeName"] for each in key_schema}
