"""The messages that queue workers take from a source: a part of their program (program.py). Bodies and fields are
bytes.
"""

from __future__ import annotations

import json
from typing import Any

# The field that has the whole request; without it each input is a field.
REQUEST = "request"
# In place of fields, where a message is one text.
BODY = ""


class QueueError(Exception):
    """The queue refuses what the worker needs; another try may work."""


class Message:
    """A message of a queue. `deliveries` includes this one: above 1 another worker had it. `handle` is how the
    source finds it again.
    """

    def __init__(
        self, number: str, fields: dict[str, bytes], deliveries: int, handle: Any = None
    ) -> None:
        self.id, self.fields, self.deliveries, self.handle = number, fields, deliveries, handle


def fields_of(message: Message) -> dict[str, bytes]:
    """Return the fields of a message. A BODY is a request of the inference protocol, or a JSON object with a value
    for each input.
    """
    if BODY not in message.fields:
        return message.fields
    body = message.fields[BODY]
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or "inputs" in content or not content:
        return {REQUEST: body}
    return {str(name): cell_of(value).encode() for name, value in content.items()}


def cell_of(value: Any) -> str:
    """Convert a value to a cell of CSV. A list with one value counts as that value."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else json.dumps(value)
