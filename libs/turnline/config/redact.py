"""What may be printed of a value: secrets become stars, addresses lose their password."""

import re
from collections.abc import Mapping

from pydantic import SecretStr

STARS = "**********"

_USERINFO = re.compile(r"(?<=://)[^/?#\s,]*(?=@)")
_URL_PARAMETER = re.compile(
    r"(?i)([?&;](?:[^=&;\s]*(?:password|secret|token|key|sig)[^=&;\s]*)=)[^&;#\s,]*"
)
_SENSITIVE_NAME = re.compile(r"(?i)password|passphrase|secret|token|credential|\.pem$|jaas|key$")


def redacted(value: object, *, name: str = "") -> object:
    """Return `value` as it may be shown.

    Args:
        value: a setting's value, or a block of them.
        name: the setting's name; one that speaks of a secret hides any text.
    """
    match value:
        case SecretStr():
            return STARS
        case Mapping():
            return {key: redacted(entry, name=str(key)) for key, entry in value.items()}
        case str() if value and _SENSITIVE_NAME.search(name):
            return STARS
        case str():
            return _URL_PARAMETER.sub(rf"\1{STARS}", _USERINFO.sub(STARS, value))
        case _:
            return value
