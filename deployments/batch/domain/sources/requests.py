"""The request that a message of a queue holds: a part of the program of queue workers (program.py)."""

from __future__ import annotations

import json
from typing import Any

from deployments.batch.domain.csv_rows import ID, BadRow, fill_shape, values_of
from deployments.batch.domain.sources.message import REQUEST, Message, fields_of
from deployments.batch.domain.worker_store import Json

MAX_MESSAGE_BYTES = 1 << 20


def body_of(message: Message, columns: Any) -> bytes:
    """Build the request of the inference protocol from a message. Raises BadRow."""
    if sum(map(len, message.fields.values())) > MAX_MESSAGE_BYTES:
        raise BadRow(f"the message is larger than {MAX_MESSAGE_BYTES:,} bytes")
    fields = fields_of(message)
    if REQUEST in fields:
        try:
            request = json.loads(fields[REQUEST])
        except (ValueError, RecursionError) as error:
            raise BadRow(f"the request is not JSON: {error}") from None
        if not isinstance(request, dict) or not isinstance(request.get("inputs"), list):
            raise BadRow('the request has no "inputs" of the inference protocol')
        return fields[REQUEST]
    if columns is None:
        raise BadRow("the message holds no request of the inference protocol")
    return json.dumps(request_of_fields(fields, columns)).encode()


def request_of_fields(fields: dict[str, bytes], columns: Any) -> Json:
    request: Json = {"inputs": []}
    if ID in fields and not any(name == ID for name, _, _ in columns):
        request["id"] = fields[ID].decode(errors="replace")
    for name, datatype, shape in columns:
        if name not in fields:
            raise BadRow(f"the message has neither a request nor the input {name}")
        try:
            data = values_of(fields[name].decode(), datatype, shape)
        except UnicodeDecodeError:
            raise BadRow(f"field {name}: it is not UTF-8") from None
        except BadRow as error:
            raise BadRow(f"field {name}: {error}") from None
        tensor = {
            "name": name,
            "shape": fill_shape(shape, data),
            "datatype": datatype,
            "data": data,
        }
        request["inputs"].append(tensor)
    return request
