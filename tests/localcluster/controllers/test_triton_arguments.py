"""Translation of a pod's arguments for the real tritonserver."""

from pathlib import Path

import pytest

from slipway_localcluster.controllers import triton
from slipway_localcluster.controllers.triton import BadArguments, Installation, Launch

_KNOWN = frozenset(
    {"model-repository", "model-store", "http-port", "grpc-port", "metrics-port", "log-info"}
)


def _plan(arguments: list[str]) -> Launch:
    installation = Installation(Path("/t/tritonserver"), Path("/t/backends"), Path("/t/caches"), {})
    return triton.plan_launch(
        installation,
        arguments,
        resolve=lambda path: Path("/pod/models") if path == "/mnt/models" else None,
        choose_ports=lambda count: list(range(4000, 4000 + count)),
        shared_memory_prefix="p-",
        known=_KNOWN,
    )


def test_ports_and_repository_are_translated_and_addresses_are_local() -> None:
    launch = _plan(
        ["tritonserver", "--model-store=/mnt/models", "--http-port=8080", "--log-info", "false"]
    )

    assert launch.ports == {8080: 4000, 8001: 4001, 8002: 4002}
    assert launch.http_port == 4000
    assert "--model-repository=/pod/models" in launch.command
    assert "--http-port=4000" in launch.command
    assert "--log-info=false" in launch.command
    for name in ("http", "grpc", "metrics"):
        assert f"--{name}-address=127.0.0.1" in launch.command
    assert not any("8080" in argument for argument in launch.command)


def test_the_last_of_a_repeated_flag_wins() -> None:
    launch = _plan(["--model-repository=/mnt/models", "--http-port=8000", "--http-port=8080"])

    assert launch.ports[8080] == 4000


def test_unknown_flags_are_listed_as_ignored() -> None:
    launch = _plan(["--model-repository=/mnt/models", "--allow-client-shm=true"])

    assert launch.ignored == ("--allow-client-shm",)
    assert not any("client-shm" in argument for argument in launch.command)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--http-port=8080"], "needs --model-repository"),
        (["--model-repository=s3://bucket/x"], "not inside a volume"),
        (["--model-repository=/mnt/models", "--http-port=http"], "needs a port number"),
        (["sh"], "cannot run the argument"),
    ],
)
def test_unsupported_arguments_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(BadArguments, match=message):
        _plan(arguments)
