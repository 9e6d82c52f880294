"""The stand-in ends as vLLM and SGLang do: real processes, real signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from slipway_localcluster.controllers import free_ports, language_container
from tests import plain_http
from tests.waiting import wait_for

_TOKENS = 60  # a second and more


@contextmanager
def running_server(*options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    (port,) = free_ports.take(1)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "slipway_localcluster.language_server",
            f"--port={port}",
            *options,
        ],
        env=dict(language_container.environment()),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for("the server answers", lambda: _answers(url))
        yield process, url
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return plain_http.client.get(f"{url}/health", timeout=1).status_code == 200
    except httpx.HTTPError:
        return False


def _reason_after_sigterm(process: subprocess.Popen[bytes], url: str) -> str:
    """Why a stream ended whose server got SIGTERM at its first token."""
    body = {"prompt": "Hello", "max_tokens": _TOKENS, "temperature": 0, "stream": True}
    reason = ""
    with plain_http.client.stream("POST", f"{url}/v1/completions", json=body, timeout=30) as answer:
        for line in answer.iter_lines():
            if not line or line.endswith("[DONE]"):
                continue
            if process.poll() is None and not reason:
                process.send_signal(signal.SIGTERM)
            reason = json.loads(line.removeprefix("data: "))["choices"][0]["finish_reason"] or ""
    return reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "abort"),
        (["--shutdown-timeout=30"], "length"),
        (["--image=vllm/vllm-openai:v0.18.0", "--shutdown-timeout=30"], "length"),
        (["--server=sglang"], "length"),
    ],
)
def test_what_runs_at_sigterm_ends_as_the_real_server_ends_it(
    options: list[str], reason: str
) -> None:
    with running_server("chat", *options) as (process, url):
        assert _reason_after_sigterm(process, url) == reason
        assert process.wait(10) == 0


def test_an_older_vllm_does_not_start_with_the_argument() -> None:
    command = [
        sys.executable,
        "-m",
        "slipway_localcluster.language_server",
        "--port=1",
        "--image=vllm/vllm-openai:v0.17.1",
        "--shutdown-timeout=30",
        "chat",
    ]

    ended = subprocess.run(
        command, env=dict(language_container.environment()), capture_output=True, check=False
    )

    assert ended.returncode == 2
    assert b"unrecognized arguments: --shutdown-timeout=30" in ended.stderr
