"""Walk the fields of a protobuf message in a file, without a schema and without reading what is skipped.

Encoding: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
_SIGN: Final = 1 << 63


class Malformed(ValueError):
    """The bytes are no message."""


@dataclass(slots=True)
class Budget:
    """The number of fields that may still be read, of all messages of a file together."""

    fields: int = 5_000_000

    def spend(self) -> None:
        self.fields -= 1
        if self.fields < 0:
            raise Malformed("it has too many fields")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. `value` is a number, or the length of the bytes that begin at `start`."""

    number: int
    value: int
    start: int = -1

    @property
    def signed(self) -> int:
        return self.value - 2 * _SIGN if self.value >= _SIGN else self.value


@dataclass(frozen=True, slots=True)
class WireMessage:
    """The bytes from `start` to `end` of a file. Every access may raise Malformed."""

    file: IO[bytes]
    start: int
    end: int
    budget: Budget = field(default_factory=Budget)

    def fields(self) -> Iterator[Field]:
        at = self.start
        while at < self.end:
            self.budget.spend()
            self.file.seek(at)
            key = self._varint()
            number, kind = key >> 3, key & 7
            if not number:
                raise Malformed("a field has no number")
            value = self._varint() if kind in (_VARINT, _BYTES) else 0
            start = self.file.tell()
            at = start + self._length(kind, value)
            if at > self.end:
                raise Malformed("a field ends behind its message")
            yield Field(number, value, start if kind == _BYTES else -1)

    def messages(self, number: int) -> Iterator[WireMessage]:
        for item in self.fields():
            if item.number == number:
                yield self._message(item)

    def texts(self, number: int, *, longest: int = 1000) -> Iterator[str]:
        for item in self.fields():
            if item.number == number:
                yield self._message(item).text(longest=longest)

    def number(self, number: int, default: int = 0) -> int:
        """Return the last value of a field, as protobuf has it."""
        value = default
        for item in self.fields():
            if item.number == number and item.start < 0:
                value = item.signed
        return value

    def text(self, *, longest: int = 1000) -> str:
        if self.end - self.start > longest:
            raise Malformed(f"a text is longer than {longest:,} bytes")
        self.file.seek(self.start)
        body = self.file.read(self.end - self.start)
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            raise Malformed("a text is not UTF-8") from error

    def entries(self, number: int) -> Iterator[tuple[str, WireMessage]]:
        """Yield the entries of a map from texts to messages."""
        for entry in self.messages(number):
            key = next(entry.texts(1), "")
            value = next(entry.messages(2), None)
            if value is not None:
                yield key, value

    def _message(self, item: Field) -> WireMessage:
        if item.start < 0:
            raise Malformed(f"field {item.number} is not a message")
        return WireMessage(self.file, item.start, item.start + item.value, self.budget)

    def _varint(self) -> int:
        value = 0
        for place in range(_LONGEST_VARINT):
            byte = self.file.read(1)
            if not byte:
                raise Malformed("it ends early")
            value |= (byte[0] & 0x7F) << (7 * place)
            if byte[0] < 0x80:
                return value & (2 * _SIGN - 1)
        raise Malformed("a number has more than 64 bits")

    @staticmethod
    def _length(kind: int, value: int) -> int:
        match kind:
            case 0:
                return 0
            case 1:
                return 8
            case 2:
                return value
            case 5:
                return 4
        raise Malformed(f"wire type {kind} is not used")
