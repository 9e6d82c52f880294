"""Code that sends exactly one request: curl, Python, JavaScript and the client's `slipway call`."""

from __future__ import annotations

import json
import pprint
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain.snippets import Snippet
from deployments.serving.domain.request_inputs import flatten

# A longer body is read from a file.
MAX_INLINE_LENGTH: Final = 2_000
FILE: Final = "request.json"
BINARY_FILE: Final = "request.bin"
_WIDTH: Final = 88


@dataclass(frozen=True, slots=True)
class RequestAddress:
    """The address of a request. `deployment` is team/name; `key_header` is empty where no key is needed;
    `curl_arguments` say the same to curl.
    """

    url: str
    deployment: str
    key_header: str = ""
    curl_arguments: str = ""
    key: str = ""

    @property
    def key_lines(self) -> str:
        """The lines of a terminal that set the key. Empty if it is not known."""
        return f"export KEY={shlex.quote(self.key)}\n" if self.key else ""

    @property
    def python_key(self) -> str:
        return json.dumps(self.key) if self.key else 'os.environ["KEY"]'

    @property
    def script_key(self) -> str:
        return json.dumps(self.key) if self.key else "process.env.KEY"


def is_inline(body: Mapping[str, Any]) -> bool:
    """Whether the code contains the request. A longer one is read from the file request.json."""
    return len(json.dumps(body, ensure_ascii=False)) <= MAX_INLINE_LENGTH


def render_snippets(address: RequestAddress, body: Mapping[str, Any]) -> list[Snippet]:
    """Render the request as code. A body too long to read is taken from the file request.json."""
    text = json.dumps(body, ensure_ascii=False)
    has_body = is_inline(body)
    snippets = [
        Snippet("curl", "curl", _curl(address, text if has_body else f"@{FILE}")),
        Snippet("python", "Python", _python(address, body if has_body else None)),
        Snippet("javascript", "JavaScript", _javascript(address, text if has_body else None)),
    ]
    inputs = _nested_inputs(body)
    if has_body and inputs is not None:
        argument = shlex.quote(json.dumps(inputs, ensure_ascii=False))
        own = f"export SLIPWAY_CALLER_KEY={shlex.quote(address.key)}\n" if address.key else ""
        command = f"{own}slipway call {address.deployment} {argument}\n"
        snippets.append(Snippet("slipway", "slipway call", command))
    return snippets


def render_binary_snippets(address: RequestAddress, headers: Mapping[str, str]) -> list[Snippet]:
    """Render a request with binary tensors as code. Its content is taken from the file request.bin."""
    curl = " ".join(f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items())
    key = address.key_header
    own = {key: address.python_key} if key else {}
    python = [f'    "{name}": "{value}",' for name, value in headers.items()]
    python += [f'    "{name}": {value},' for name, value in own.items()]
    script = [f'    "{name}": "{value}",' for name, value in headers.items()]
    script += [f'    "{name}": {address.script_key},' for name in own]
    return [
        Snippet(
            "curl",
            "curl",
            f"{address.key_lines}curl --data-binary @{BINARY_FILE} {address.curl_arguments}\\\n  {curl} \\\n  {address.url}\n",
        ),
        Snippet(
            "python",
            "Python",
            "\n".join(
                [
                    *(["import os"] if key and not address.key else []),
                    "from pathlib import Path",
                    "",
                    "import httpx",
                    "",
                    "headers = {",
                    *python,
                    "}",
                    f'content = Path("{BINARY_FILE}").read_bytes()',
                    f'answer = httpx.post("{address.url}", content=content, headers=headers)',
                    "answer.raise_for_status()",
                    "print(answer.json())",
                    "",
                ]
            ),
        ),
        Snippet(
            "javascript",
            "JavaScript",
            "\n".join(
                [
                    'import { readFile } from "node:fs/promises";',
                    "",
                    "const headers = {",
                    *script,
                    "};",
                    f'const body = await readFile("{BINARY_FILE}");',
                    f'const answer = await fetch("{address.url}", {{ method: "POST", headers, body }});',
                    "if (!answer.ok) throw new Error(await answer.text());",
                    "console.log(await answer.json());",
                    "",
                ]
            ),
        ),
    ]


def _curl(address: RequestAddress, content: str) -> str:
    body = content if content.startswith("@") else shlex.quote(content)
    return f"{address.key_lines}curl --json {body} {address.curl_arguments}\\\n  {address.url}\n"


def _python(address: RequestAddress, body: Mapping[str, Any] | None) -> str:
    key = f'    headers={{"{address.key_header}": {address.python_key}}},\n'
    imports = ["import json"] if body is None else []
    imports += ["import os"] if address.key_header and not address.key else []
    imports += ["from pathlib import Path"] if body is None else []
    lines = [*imports, *([""] if imports else []), "import httpx", ""]
    read = f'json.loads(Path("{FILE}").read_text())'
    lines.append(f"body = {read if body is None else _literal(body)}")
    call = f'answer = httpx.post(\n    "{address.url}",\n    json=body,\n'
    lines.append(f"{call}{key if address.key_header else ''})")
    lines += ["answer.raise_for_status()", "print(answer.json())"]
    return "\n".join(lines) + "\n"


def _literal(body: Mapping[str, Any]) -> str:
    text = pprint.pformat(dict(body), width=_WIDTH, compact=True, sort_dicts=False)
    return text.replace("\n", "\n       ")


def _javascript(address: RequestAddress, text: str | None) -> str:
    key = f', "{address.key_header}": {address.script_key}' if address.key_header else ""
    read = f'await readFile("{FILE}", "utf8")'
    lines = ['import { readFile } from "node:fs/promises";', ""] if text is None else []
    lines += [
        f"const body = {read if text is None else text};",
        f'const answer = await fetch("{address.url}", {{',
        '  method: "POST",',
        f'  headers: {{ "Content-Type": "application/json"{key} }},',
        f"  body{'' if text is None else ': JSON.stringify(body)'},",
        "});",
        "if (!answer.ok) throw new Error(await answer.text());",
        "console.log(await answer.json());",
    ]
    return "\n".join(lines) + "\n"


def _nested_inputs(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the inputs as nested lists by name, as `slipway call` takes them. None for a body that says more."""
    rows = body.get("inputs")
    if set(body) != {"inputs"} or not isinstance(rows, list) or not rows:
        return None
    inputs = {}
    for row in rows:
        if not isinstance(row, Mapping) or set(row) != {"name", "datatype", "shape", "data"}:
            return None
        shape, data = row["shape"], row["data"]
        if not isinstance(shape, list) or not isinstance(data, list) or not data or not shape:
            return None
        nested = _nest(flatten(data), shape)
        if nested is None:
            return None
        inputs[str(row["name"])] = nested
    return inputs


def _nest(data: list[Any], shape: list[Any]) -> list[Any] | None:
    """Nest row-major values. None where they do not fill the shape."""
    for size in reversed(shape[1:]):
        if type(size) is not int or size < 1 or len(data) % size:
            return None
        data = [data[start : start + size] for start in range(0, len(data), size)]
    return data if [len(data)] == shape[:1] else None
