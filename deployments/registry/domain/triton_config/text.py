"""The text of config.pbtxt: protobuf's text format of ModelConfig, with the place of what is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import text_format

from deployments.registry.domain.triton_config import schema

MAX_LENGTH: Final = 100_000
# A field by name, an element of a list by index, an entry of a map by key.
Path = tuple[str | int, ...]
_NO_FIELD = re.compile(r'Message type "([\w.]+)" has no field named "([^"]*)"')
_NO_VALUE = re.compile(r'Enum type "([\w.]+)" has no value named ([\w+-]+)')
_PLACE = re.compile(r"^\d+:\d+ : ")
_QUOTED_LINE = re.compile(r"^'.*': ", re.DOTALL)
_LONGEST_NAME: Final = 60
_LONGEST_LINE: Final = 100


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A problem of a text or a setting, and its fix. `line` 0 means no place in the text. `setting` is the path
    of the setting, where there is one.
    """

    message: str
    fix: str = ""
    line: int = 0
    column: int = 0
    is_blocking: bool = True
    setting: str = ""

    def __str__(self) -> str:
        place = f"Line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.message} {self.fix}".strip()


class InvalidText(ValueError):
    """The text is not a ModelConfig."""

    def __init__(self, problem: ConfigProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def parse(text: str) -> Any:
    """Return the ModelConfig of a text. Raises InvalidText."""
    if len(text) > MAX_LENGTH:
        raise InvalidText(ConfigProblem(f"The text has more than {MAX_LENGTH:,} characters."))
    try:
        return text_format.Parse(text, schema.new_config())
    except text_format.ParseError as error:
        raise InvalidText(_problem(error, text)) from error
    except (ValueError, RecursionError) as error:
        raise InvalidText(
            ConfigProblem("The text is not valid.", "Check its quotes and braces.")
        ) from error


def write(config: Any) -> str:
    """Write a config, with a line for each field and element that fits in one, in the schema's order. The same
    config gives the same text, in ASCII.
    """
    return "".join(f"{_write_part(part)}\n" for part in _parts(config))


def places(text: str) -> Mapping[Path, tuple[int, int]]:
    """Return the line and column, both from 1, of each field of a text that parses."""
    scanner = _Scanner(text)
    scanner.fields((), schema.new_config().DESCRIPTOR, end="")
    return scanner.places


def _parts(config: Any) -> Iterator[Any]:
    """Yield a config for each field, for each element of a list and for each entry of a map."""
    for field, value in sorted(config.ListFields(), key=lambda item: item[0].index):
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        for key in sorted(value) if is_map else range(len(value)) if field.is_repeated else (None,):
            part = schema.new_config()
            if key is None:
                partial_copy(config, part, field.name)
            elif not is_map:
                getattr(part, field.name).add().CopyFrom(value[key])
            elif hasattr(value[key], "CopyFrom"):
                getattr(part, field.name)[key].CopyFrom(value[key])
            else:
                getattr(part, field.name)[key] = value[key]
            yield part


def partial_copy(source: Any, target: Any, name: str) -> None:
    """Copy one field of a message, as it is set."""
    partial = type(source)()
    partial.CopyFrom(source)
    for field, _ in partial.ListFields():
        if field.name != name:
            partial.ClearField(field.name)
    target.ClearField(name)
    target.MergeFrom(partial)


def _write_part(part: Any) -> str:
    text: str = text_format.MessageToString(
        part,
        as_utf8=False,
        use_short_repeated_primitives=True,
        use_index_order=True,
        as_one_line=True,
    )
    if len(text) <= _LONGEST_LINE:
        return text.rstrip()
    text = text_format.MessageToString(
        part, as_utf8=False, use_short_repeated_primitives=True, use_index_order=True
    )
    return text.rstrip()


def _problem(error: text_format.ParseError, text: str) -> ConfigProblem:
    message = _QUOTED_LINE.sub("", _PLACE.sub("", str(error)))
    line, column = error.GetLine() or 0, error.GetColumn() or 0
    if match := _NO_FIELD.search(message):
        message, fix = _describe_unknown(match[2], _fields_of(match[1]), f"in {_label(match[1])}")
        line, column = _place_of(text, match[2], line, column)
        return ConfigProblem(message, fix, line, column)
    if match := _NO_VALUE.search(message):
        message, fix = _describe_unknown(match[2], _values_of(match[1]), f"of {_label(match[1])}")
        line, column = _place_of(text, match[2], line, column)
        return ConfigProblem(message, fix, line, column)
    return ConfigProblem(message.rstrip(".")[:300] + ".", "", line, column)


def _describe_unknown(name: str, known: list[str], where: str) -> tuple[str, str]:
    nearest = difflib.get_close_matches(name[:_LONGEST_NAME], known, n=1)
    fix = f'Did you mean "{nearest[0]}"?' if nearest else "Remove it."
    return f'There is no "{name[:_LONGEST_NAME]}" {where}.', fix


def _place_of(text: str, name: str, line: int, column: int) -> tuple[int, int]:
    """Return the place of a name. The parser reports the place after it; the name itself is before that."""
    lines = text.splitlines()
    for number in range(min(line, len(lines)), 0, -1):
        end = column + 1 if number == line else len(lines[number - 1])
        start = lines[number - 1].rfind(name, 0, end + len(name))
        if start >= 0:
            return number, start + 1
    return line, column


def _label(full_name: str) -> str:
    return full_name.rpartition(".")[2]


def _descriptor(full_name: str, message: Any = None) -> Any:
    """Return the message or enum of that name inside ModelConfig, or None."""
    pool = (message or schema.new_config().DESCRIPTOR).file.pool
    for find in (pool.FindMessageTypeByName, pool.FindEnumTypeByName):
        try:
            return find(full_name)
        except KeyError:
            continue
    return None


def _fields_of(full_name: str) -> list[str]:
    descriptor = _descriptor(full_name)
    return [] if descriptor is None else [field.name for field in descriptor.fields]


def _values_of(full_name: str) -> list[str]:
    descriptor = _descriptor(full_name)
    return [] if descriptor is None else [value.name for value in descriptor.values]


class _Scanner:
    """A scanner that walks the tokens of a text that parses, and notes where each field begins."""

    def __init__(self, text: str) -> None:
        self._tokens = text_format.Tokenizer(text.split("\n"))
        self.places: dict[Path, tuple[int, int]] = {}

    def fields(self, path: Path, descriptor: Any, *, end: str) -> None:
        """Parse the fields of a message up to its closing brace."""
        counts: dict[str, int] = {}
        while not self._tokens.AtEnd() and (not end or self._tokens.token != end):
            self._field(path, descriptor, counts)
            if self._tokens.token in (",", ";"):
                self._tokens.NextToken()

    def _field(self, path: Path, descriptor: Any, counts: dict[str, int]) -> None:
        place = (self._tokens._line + 1, self._tokens._column + 1)
        name = self._tokens.ConsumeIdentifier()
        field = descriptor.fields_by_name[name]
        self.places.setdefault((*path, name), place)
        self._tokens.TryConsume(":")
        is_list = self._tokens.TryConsume("[")
        if name == "key" and descriptor.GetOptions().map_entry:
            # An entry of a map has its key as its name too.
            self.places.setdefault((*path[:-1], self._tokens.token.strip("'\"")), self.places[path])
        while not (is_list and self._tokens.TryConsume("]")):
            self._element((*path, name), field, counts, place if not is_list else None)
            if not is_list:
                return
            self._tokens.TryConsume(",")

    def _element(
        self, path: Path, field: Any, counts: dict[str, int], place: tuple[int, int] | None
    ) -> None:
        here = place or (self._tokens._line + 1, self._tokens._column + 1)
        if field.message_type is None:
            self._skip_value()
            return
        inner: Path = path
        if field.is_repeated:
            index = counts[field.name] = counts.get(field.name, -1) + 1
            inner = (*path, index)
            self.places.setdefault(inner, here)
        opening = self._tokens.token
        self._tokens.NextToken()
        self.fields(inner, field.message_type, end={"{": "}", "<": ">"}[opening])
        self._tokens.NextToken()

    def _skip_value(self) -> None:
        is_text = self._tokens.token[:1] in ("'", '"')
        if self._tokens.TryConsume("-"):
            is_text = False
        self._tokens.NextToken()
        # Adjacent strings are one value.
        while is_text and self._tokens.token[:1] in ("'", '"'):
            self._tokens.NextToken()
