"""What a turn says, as an ordered list of texts, images and files, for adapters of frameworks.

Reads the guide's three ways to say something (`prompt`, `images`/`files`, prebuilt `requests`) and
gives one form, with every attachment as a URL a model provider can read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from turnline.agent.port import FatalAgentError, Turn
from turnline.protocol import Attachment

_READABLE_SCHEMES = ("data:", "http://", "https://")


class PartKind(StrEnum):
    """Kinds of parts."""

    TEXT = "text"
    IMAGE = "image"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of what the user said.

    Attributes:
        text: of a TEXT part, never empty; empty for others.
        url: of an IMAGE or FILE part: a `data:` or http(s) URL.
        name: file name for people; may be empty.
    """

    kind: PartKind
    text: str = ""
    url: str = ""
    name: str = ""

    @property
    def inline(self) -> bool:
        """Whether the URL holds the data itself."""
        return self.url.startswith("data:")

    def lasting(self) -> "Part":
        """The form kept in history, which would grow large with inline attachments."""
        if not self.inline:
            return self
        return Part(kind=PartKind.TEXT, text=f"[{self.kind} attached: {self.name or 'unnamed'}]")


def parts_of(turn: Turn) -> tuple[Part, ...]:
    """Give what the user said in this turn, in order: prompt, images, files, prebuilt requests.

    Raises:
        FatalAgentError: 400, an attachment or request that model providers cannot read.
    """
    parts: list[Part] = []
    if turn.prompt:
        parts.append(Part(kind=PartKind.TEXT, text=turn.prompt))
    parts += [_attached(PartKind.IMAGE, image, "image/png") for image in turn.images]
    parts += [_attached(PartKind.FILE, file, "application/octet-stream") for file in turn.files]
    for request in turn.requests:
        parts += _requested(request)
    return tuple(parts)


def _attached(kind: PartKind, attachment: Attachment, default_type: str) -> Part:
    data = attachment.data
    scheme, colon, _ = data[:16].partition(":")
    if colon and not data.startswith(_READABLE_SCHEMES):
        raise FatalAgentError(
            f"This agent cannot read attachments from {scheme}: addresses; send the data itself",
            status_code=400,
        )
    url = data if colon else f"data:{attachment.mime_type or default_type};base64,{data}"
    return Part(kind=kind, url=url, name=attachment.name)


def _requested(request: Mapping[str, Any]) -> Iterator[Part]:
    kind = request.get("type")
    match kind:
        case "text":
            if text := str(request.get("text") or ""):
                yield Part(kind=PartKind.TEXT, text=text)
        case "image":
            yield _attached(PartKind.IMAGE, _attachment(request, "image_data"), "image/png")
        case "file":
            yield _attached(
                PartKind.FILE, _attachment(request, "file_data"), "application/octet-stream"
            )
        case _:
            raise FatalAgentError("This agent reads text, image and file requests", status_code=400)


def _attachment(request: Mapping[str, Any], key: str) -> Attachment:
    return Attachment(
        data=str(request.get(key) or ""),
        name=str(request.get("name") or ""),
        mime_type=str(request.get("mime_type") or ""),
    )
