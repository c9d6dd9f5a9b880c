"""Chunks as they lie in an item: one line each, `<index>:<event>`, of one attempt."""

from collections.abc import Iterator, Sequence

from turnline.protocol import Chunk
from turnline.store.encoding import decode_chunk, encode_chunk

# Written at once; a longer append is several writes, one after the other.
SEGMENT_BYTES = 1_000_000


def segments(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    """Cut chunks into runs that fit a write each."""
    run: list[Chunk] = []
    size = 0
    for chunk in chunks:
        weight = _weight(chunk)
        if run and size + weight > SEGMENT_BYTES:
            yield run
            run, size = [], 0
        run.append(chunk)
        size += weight
    if run:
        yield run


def encode_segment(chunks: Sequence[Chunk]) -> bytes:
    """Give the lines of chunks; JSON as it is written here holds no line break."""
    return b"\n".join(b"%d:%b" % (chunk.index, encode_chunk(chunk)) for chunk in chunks)


def decode_segment(attempt: int, raw: bytes) -> Sequence[Chunk]:
    """Read what `encode_segment` wrote."""
    lines = (line.partition(b":") for line in raw.split(b"\n"))
    return [decode_chunk(attempt, int(index), body) for index, _, body in lines]


def _weight(chunk: Chunk) -> int:
    return len(encode_chunk(chunk)) + 20
