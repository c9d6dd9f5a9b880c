"""The last guard of the logs: what a field may hold when it reaches a line.

Callers pass ids, codes and numbers.  Should one pass more by mistake, then fields with a telling
name are blanked, credentials inside texts are cut out, long texts are cut off, and objects show
their type only, since an envelope's or a request's `repr` would hold the prompt.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

REDACTED = "[redacted]"
MAX_TEXT = 2_000
MAX_ITEMS = 50
_MAX_DEPTH = 4

# Whole names of fields that would hold what a user or an agent said.
_PRIVATE_NAMES = frozenset(
    {
        "answer",
        "body",
        "content",
        "data",
        "delta",
        "files",
        "frame",
        "history",
        "images",
        "messages",
        "payload",
        "prompt",
        "raw",
        "reply",
        "text",
    }
)
# Endings of names that hold credentials, compared without `-` and `_`.
_SECRET_ENDINGS = (
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "passwd",
    "password",
    "secret",
    "token",
)

_QUERY_SECRET = re.compile(
    r"(?i)([?&;](?:access_|refresh_|id_)?(?:token|key|api_?key|secret|password|signature|code)=)"
    r"[^&\s\"'#]+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_URL_PASSWORD = re.compile(r"(://)[^/@\s]+@")


@lru_cache(maxsize=1024)
def is_private(name: str) -> bool:
    """Whether a field of this name must not be shown."""
    lowered = name.lower()
    flat = lowered.replace("_", "").replace("-", "")
    return lowered in _PRIVATE_NAMES or flat.endswith(_SECRET_ENDINGS)


def scrub(text: str) -> str:
    """Cut credentials out of a text (URL queries, `Bearer ...`, `user:password@`) and cap it."""
    if "=" in text:
        text = _QUERY_SECRET.sub(rf"\1{REDACTED}", text)
    if "@" in text:
        text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    if " " in text:
        text = _BEARER.sub(rf"\1 {REDACTED}", text)
    if len(text) > MAX_TEXT:
        return f"{text[:MAX_TEXT]}... (+{len(text) - MAX_TEXT} characters)"
    return text


def shown(value: object, depth: int = 0) -> object:
    """What may be shown of a value: text, numbers, and lists and mappings of them."""
    kind = type(value)
    if kind is int or kind is float or kind is bool or value is None:
        return value
    if isinstance(value, str):
        return scrub(str(value))
    if isinstance(value, int | float):
        return value
    if depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            return {
                str(key): REDACTED if is_private(str(key)) else shown(item, depth + 1)
                for key, item in list(value.items())[:MAX_ITEMS]
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [shown(item, depth + 1) for item in list(value)[:MAX_ITEMS]]
    return f"<{kind.__name__}>"
