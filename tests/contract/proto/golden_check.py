"""Holds stubs against the golden vectors with nothing but Protobuf installed.

    python golden_check.py GOLDEN MODULE...

checks the vectors of the messages that the modules declare, in both directions, and prints how many
there were.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass

# Its bytes hold fields that its readable form cannot.
NEWER = "request-of-a-newer-minor-version"


def check(golden: Path, modules: Sequence[str]) -> int:
    """Give the number of vectors that hold; stops with the name of one that does not."""
    kinds = {
        name: GetMessageClass(descriptor)
        for module in modules
        for name, descriptor in (
            importlib.import_module(module).DESCRIPTOR.message_types_by_name.items()
        )
    }
    checked = 0
    for path in sorted(golden.glob("*.json")):
        vector = json.loads(path.read_text(encoding="utf-8"))
        kind = kinds.get(vector["message"].rpartition(".")[2])
        if kind is None:
            continue
        raw = bytes.fromhex(vector["binary"])
        message = kind.FromString(raw)
        read = json_format.MessageToDict(message, preserving_proto_field_name=True)
        made = json_format.ParseDict(vector["value"], kind())
        if read != vector["value"] or message.SerializeToString(deterministic=True) != raw:
            raise SystemExit(f"{path.stem}: its bytes are read as {read}")
        if path.stem != NEWER and made.SerializeToString(deterministic=True) != raw:
            raise SystemExit(f"{path.stem}: its readable form has other bytes")
        checked += 1
    return checked


if __name__ == "__main__":
    print(check(Path(sys.argv[1]), sys.argv[2:]))
