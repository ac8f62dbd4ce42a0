"""The difference between two versions of an object, in git's own form: copy this stretch, insert these bytes.

Made for what memories are: text where a line came or went, folders where an entry changed. Pure functions on bytes.
"""

from __future__ import annotations

_SHORTEST_COPY = 7  # an order to copy takes up to eight bytes itself


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """What `delta` makes of `base`; `ValueError` if it does not fit."""
    _, at = _number(delta, 0)
    size, at = _number(delta, at)
    out = bytearray()
    while at < len(delta):
        op = delta[at]
        at += 1
        if op & 0x80:
            offset = length = 0
            for bit in range(7):
                if op >> bit & 1:
                    if bit < 4:
                        offset |= delta[at] << 8 * bit
                    else:
                        length |= delta[at] << 8 * (bit - 4)
                    at += 1
            out += base[offset : offset + (length or 0x10000)]
        else:
            out += delta[at : at + op]
            at += op
    if len(out) != size:
        raise ValueError("a difference that does not fit")
    return bytes(out)


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _number_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    out.append(value)
    return bytes(out)


def difference(base: bytes, target: bytes, *, tree: bool) -> bytes:
    """How to make `target` from `base`: equal ends copied, then equal lines (of a tree: entries) between them."""
    head = _common(base, target)
    limit = min(len(base), len(target)) - head
    tail = _common(base[len(base) - limit :][::-1], target[len(target) - limit :][::-1]) if limit else 0
    out = bytearray(_number_bytes(len(base)) + _number_bytes(len(target)))
    steps: list[tuple[int, int] | bytes] = [(0, head)] if head else []
    at = head
    where: dict[bytes, int] = {}
    for piece in _pieces(base[head : len(base) - tail], tree):
        where.setdefault(piece, at)
        at += len(piece)
    for piece in _pieces(target[head : len(target) - tail], tree):
        found = where.get(piece)
        last = steps[-1] if steps else None
        if isinstance(last, tuple) and base.startswith(piece, last[0] + last[1]):
            steps[-1] = last[0], last[1] + len(piece)
        elif found is not None and len(piece) >= _SHORTEST_COPY:
            steps.append((found, len(piece)))
        elif isinstance(last, bytes):
            steps[-1] = last + piece
        else:
            steps.append(piece)
    if tail:
        steps.append((len(base) - tail, tail))
    for step in steps:
        out += _copy(*step) if isinstance(step, tuple) else _insert(step)
    return bytes(out)


def _pieces(data: bytes, tree: bool) -> list[bytes]:
    if not tree:
        return data.splitlines(keepends=True)
    # Cut where a name ends: a piece is one entry's object name and the next one's mode and name, never mistaken.
    pieces: list[bytes] = []
    at = 0
    while (end := data.find(b"\0", at)) >= 0:
        pieces.append(data[at : end + 21])
        at = end + 21
    return [*pieces, data[at:]] if at < len(data) else pieces


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with, by halving: each comparison runs at the speed of memcmp."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _copy(offset: int, length: int) -> bytes:
    out = bytearray()
    while length:
        now = min(length, 0xFF_FFFF)
        op, rest = 0x80, bytearray()
        for bit, byte in enumerate((*offset.to_bytes(4, "little"), *now.to_bytes(3, "little"))):
            if byte:
                op |= 1 << bit
                rest.append(byte)
        out += bytes([op]) + rest
        offset, length = offset + now, length - now
    return bytes(out)


def _insert(data: bytes) -> bytes:
    return b"".join(bytes([len(data[at : at + 127])]) + data[at : at + 127] for at in range(0, len(data), 127))
