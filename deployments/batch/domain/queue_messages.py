"""The request that a message of a queue holds: a part of the program of queue workers (program.py)."""

from __future__ import annotations

import json
from typing import Any

from deployments.batch.domain.csv_rows import ID, BadRow, filled, values_of
from deployments.batch.domain.redis_stream import Message
from deployments.batch.domain.worker_store import Json

# The field that has the whole request; without it each input is a field.
REQUEST = "request"
MAX_MESSAGE_BYTES = 1 << 20


def body_of(message: Message, columns: Any) -> bytes:
    """The request of the inference protocol. Raises BadRow."""
    fields = message.fields
    if sum(map(len, fields.values())) > MAX_MESSAGE_BYTES:
        raise BadRow(f"the message is larger than {MAX_MESSAGE_BYTES:,} bytes")
    if REQUEST in fields:
        try:
            request = json.loads(fields[REQUEST])
        except (ValueError, RecursionError) as error:
            raise BadRow(f"the field {REQUEST} is no JSON: {error}") from None
        if not isinstance(request, dict) or not isinstance(request.get("inputs"), list):
            raise BadRow(f'the field {REQUEST} has no "inputs" of the inference protocol')
        return fields[REQUEST]
    if columns is None:
        raise BadRow(f"the message has no field {REQUEST}")
    return json.dumps(request_of_fields(fields, columns)).encode()


def request_of_fields(fields: dict[str, bytes], columns: Any) -> Json:
    request: Json = {"inputs": []}
    if ID in fields and not any(name == ID for name, _, _ in columns):
        request["id"] = fields[ID].decode(errors="replace")
    for name, datatype, shape in columns:
        if name not in fields:
            raise BadRow(f"the message has neither the field {REQUEST} nor the input {name}")
        try:
            data = values_of(fields[name].decode(), datatype, shape)
        except UnicodeDecodeError:
            raise BadRow(f"field {name}: it is no UTF-8") from None
        except BadRow as error:
            raise BadRow(f"field {name}: {error}") from None
        tensor = {"name": name, "shape": filled(shape, data), "datatype": datatype, "data": data}
        request["inputs"].append(tensor)
    return request
