"""The page of the gRPC services and of every message of the protocol, in Markdown."""

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from turnline.errors import CODES

_INTRODUCTION = """\
# gRPC and Protobuf

Every service and message of `proto/turnline/v1`, which this page is made from
(`python -m turnline.api_docs`). What may change in them, and how: [wire contract]({proto_readme}).

The token comes as `authorization` metadata. A call that is refused ends with the status below and,
as details, `google.rpc.ErrorInfo`, `BadRequest` or `RetryInfo` where they fit, and a
[Failure](#failure).
"""

_PROTO_README = "../../tests/contract/proto/README.md"
_REPEATED = FieldDescriptorProto.LABEL_REPEATED


def grpc_page(files: Iterable[FileDescriptorProto], comments: Mapping[str, str]) -> str:
    """Give the whole page, ending in a line end.

    Args:
        files: the .proto files, in the order wanted.
        comments: see `turnline.api_docs.protos.proto_comments`.
    """
    own = list(files)
    parts = [_INTRODUCTION.format(proto_readme=_PROTO_README), _statuses(), "## Services\n"]
    parts += [_service(f, service, comments) for f in own for service in f.service]
    for file in own:
        if file.message_type or file.enum_type:
            title = file.name.rpartition("/")[2]
            parts += [f"## {title}\n", f"{comments[file.name]}\n"]
            parts += [_message(file, message, comments) for message in file.message_type]
            parts += [_enum(file, enum, comments) for enum in file.enum_type]
    return "\n".join(parts)


def _statuses() -> str:
    rows = (
        (f"`{code.value}`", meaning.grpc_status, str(meaning.http_status), meaning.retry.value)
        for code, meaning in CODES.items()
    )
    return "## Failures\n\n" + _table(("code", "gRPC status", "HTTP status", "send again"), rows)


def _service(
    file: FileDescriptorProto, service: ServiceDescriptorProto, comments: Mapping[str, str]
) -> str:
    name = f"{file.package}.{service.name}"
    rows = (
        (
            f"`{method.name}`",
            _type(method.input_type, streamed=method.client_streaming),
            _type(method.output_type, streamed=method.server_streaming),
            comments.get(f"{name}.{method.name}", ""),
        )
        for method in service.method
    )
    head = f"### {service.name}\n\n`{name}`. {comments[name]}\n\n"
    return head + _table(("method", "takes", "gives", "meaning"), rows)


def _type(name: str, *, streamed: bool) -> str:
    return f"{'stream of ' if streamed else ''}{_link(name)}"


def _message(
    file: FileDescriptorProto, message: DescriptorProto, comments: Mapping[str, str]
) -> str:
    name = f"{file.package}.{message.name}"
    head = f"### {message.name}\n\n{comments.get(name, '')}\n"
    if not message.field:
        return head
    rows = (
        (
            str(field.number),
            f"`{field.name}`",
            _field_type(message, field),
            comments.get(f"{name}.{field.name}", ""),
        )
        for field in message.field
    )
    return f"{head}\n{_table(('number', 'field', 'type', 'meaning'), rows)}"


def _field_type(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    for nested in message.nested_type:
        if field.type_name.endswith(f".{message.name}.{nested.name}"):
            key, value = (_one_type(part) for part in nested.field)
            return f"map of {key} to {value}"
    one = _one_type(field)
    if field.label == _REPEATED:
        return f"list of {one}"
    if field.HasField("oneof_index"):
        return f"{one}, one of `{message.oneof_decl[field.oneof_index].name}`"
    return one


def _one_type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _link(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _link(type_name: str) -> str:
    package, _, name = type_name.lstrip(".").rpartition(".")
    return f"{package}.{name}" if package == "google.protobuf" else f"[{name}](#{name.lower()})"


def _enum(file: FileDescriptorProto, enum: EnumDescriptorProto, comments: Mapping[str, str]) -> str:
    name = f"{file.package}.{enum.name}"
    rows = (
        (str(value.number), f"`{value.name}`", comments.get(f"{name}.{value.name}", ""))
        for value in enum.value
    )
    head = f"### {enum.name}\n\n{comments.get(name, '')}\n\n"
    return head + _table(("number", "value", "meaning"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(_lines([head, tuple("---" for _ in head), *rows]))


def _lines(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in rows:
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"
