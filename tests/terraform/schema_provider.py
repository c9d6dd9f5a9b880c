"""A Terraform provider that knows schemas and nothing else.

Terraform asks it what arguments resources take, and checks a configuration against the answer:
names, types, what is required, references.  Values for what only AWS computes are refused here.
What else a provider looks at (allowed values, arguments that exclude each other) this one does not
know.  It plans and reads nothing; in `terraform test` the
mocks of Terraform itself do so.  It speaks the plugin protocol, version 5 (gRPC, messages encoded
here), and is attached like a provider under a debugger, so nothing is installed.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from terraform.packed_values import unpacked

_NESTING = {"single": 1, "list": 2, "set": 3, "map": 4}
_STOP_SECONDS = 5.0


@contextmanager
def attached(schemas: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Serve one provider for each address; give the variables that lead Terraform to them.

    Args:
        schemas: `provider_schemas` of `terraform providers schema -json`.
    """
    servers, leads = [], {}
    try:
        for address, schema in schemas.items():
            server, port = _serve(schema)
            servers.append(server)
            leads[address] = {
                "Protocol": "grpc",
                "ProtocolVersion": 5,
                "Pid": os.getpid(),
                "Test": True,
                "Addr": {"Network": "tcp", "String": f"127.0.0.1:{port}"},
            }
        yield {"TF_REATTACH_PROVIDERS": json.dumps(leads)}
    finally:
        for server in servers:
            server.stop(grace=None).wait(_STOP_SECONDS)


def _serve(schema: Mapping[str, Any]) -> tuple[grpc.Server, int]:
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    encoded = _provider_schema(schema)
    answers: dict[str, Callable[[bytes], bytes]] = {
        "GetSchema": lambda _: encoded,
        # The configuration, as it came: field 1 of both messages.
        "PrepareProviderConfig": lambda request: request,
        "ValidateResourceTypeConfig": lambda request: _faults(request, schema["resource_schemas"]),
        "ValidateDataSourceConfig": lambda request: _faults(request, schema["data_source_schemas"]),
        "Configure": lambda _: b"",
        "Stop": lambda _: b"",
    }
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        method: grpc.unary_unary_rpc_method_handler(_behaviour(answer))
        for method, answer in answers.items()
    }
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("tfplugin5.Provider", handlers),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def _behaviour(answer: Callable[[bytes], bytes]) -> Callable[[bytes, Any], bytes]:
    return lambda request, _context: answer(request)


def _faults(request: bytes, schemas: Mapping[str, Any]) -> bytes:
    """Refuse values for what is computed; the request names a type and holds the values."""
    fields = dict(_fields(request))
    block = schemas[fields[1].decode()]["block"]
    config = unpacked(dict(_fields(fields[2]))[1])
    error = 1
    return b"".join(
        _bytes(1, _number(1, error) + _text(2, f'Can\'t configure a value for "{name}"'))
        for name in _computed(block, config)
    )


def _computed(block: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    for name, entry in block.get("attributes", {}).items():
        given = config.get(name) is not None
        if given and not (entry.get("optional") or entry.get("required")):
            yield name
    for name, nested in block.get("block_types", {}).items():
        inner = config.get(name)
        for values in inner if isinstance(inner, list) else [inner]:
            if isinstance(values, dict):
                yield from _computed(nested["block"], values)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the texts and messages in a message, by field; numbers are passed over."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        size, at = _read_varint(message, at)
        if tag & 7 == 2:
            yield tag >> 3, message[at : at + size]
            at += size


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _provider_schema(schema: Mapping[str, Any]) -> bytes:
    """Encode the answer to GetSchema."""
    return (
        _bytes(1, _schema(schema["provider"]))
        + _entries(2, schema["resource_schemas"])
        + _entries(3, schema["data_source_schemas"])
    )


def _entries(field: int, schemas: Mapping[str, Any]) -> bytes:
    return b"".join(
        _bytes(field, _text(1, name) + _bytes(2, _schema(schema)))
        for name, schema in schemas.items()
    )


def _schema(schema: Mapping[str, Any]) -> bytes:
    return _number(1, schema["version"]) + _bytes(2, _block(schema["block"]))


def _block(block: Mapping[str, Any]) -> bytes:
    attributes = block.get("attributes", {}).items()
    nested = block.get("block_types", {}).items()
    return b"".join(
        (
            *(_bytes(2, _attribute(name, entry)) for name, entry in attributes),
            *(_bytes(3, _nested(name, entry)) for name, entry in nested),
        )
    )


def _attribute(name: str, entry: Mapping[str, Any]) -> bytes:
    return (
        _text(1, name)
        + _text(2, json.dumps(entry["type"]))
        + _number(4, entry.get("required", False))
        + _number(5, entry.get("optional", False))
        + _number(6, entry.get("computed", False))
    )


def _nested(name: str, entry: Mapping[str, Any]) -> bytes:
    return (
        _text(1, name)
        + _bytes(2, _block(entry["block"]))
        + _number(3, _NESTING[entry["nesting_mode"]])
        + _number(4, entry.get("min_items", 0))
        + _number(5, entry.get("max_items", 0))
    )


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(int(value)) if value else b""


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
