"""Events arrive at a real server on 127.0.0.1, each at least once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine

from portal.audit import export, sealing, streaming, syslog
from portal.audit.models import StreamPosition
from portal.checks import audit_syslog_is_an_address
from tests.cluster.certificates import Authority
from tests.portal.audit.syslog_server import SyslogServer, running
from tests.portal.audit.trails import record

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Any) -> Iterator[SyslogServer]:
    with running() as server:
        settings.SLIPWAY_AUDIT_SYSLOG = server.address
        settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
        yield server


def _positions(server: SyslogServer) -> list[int]:
    return [json.loads(message[message.index("{") :])["position"] for message in server.messages]


def _sealed(*labels: str) -> None:
    with time_machine.travel(NOW, tick=False):
        record(*labels)
        sealing.seal()


def test_chained_events_arrive_as_rfc_5424_messages_with_their_hashes(server: SyslogServer) -> None:
    _sealed("a", "b\nö")
    record("not chained yet")

    assert streaming.run() == 2

    head = "<109>1 2026-11-20T09:00:00.000000+00:00 slipway.example.org slipway - test.done - "
    expected = [head + export.line(row) for row in export.records()]
    assert server.messages == expected
    assert all(message.isascii() and "\n" not in message for message in server.messages)
    assert (streaming.status().position, streaming.status().error) == (2, "")


def test_the_next_run_sends_only_what_is_new(
    server: SyslogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_BATCH", 2)
    _sealed("a", "b", "c")
    assert (streaming.run(), streaming.run()) == (3, 0)

    _sealed("d")
    assert streaming.run() == 1

    assert _positions(server) == [1, 2, 3, 4]


def test_a_server_that_drops_the_connection_gets_everything_again(server: SyslogServer) -> None:
    _sealed("a", "b")
    server.lets_go_after = 10

    assert streaming.run() == 0
    assert (streaming.status().position, server.messages) == (0, [])
    assert streaming.status().error.startswith("127.0.0.1:")

    server.lets_go_after = None
    assert streaming.run() == 2
    assert _positions(server) == [1, 2]
    assert (streaming.status().position, streaming.status().error) == (2, "")


def test_a_server_that_is_away_keeps_nobody_from_trying_again(settings: Any) -> None:
    with running() as server:
        settings.SLIPWAY_AUDIT_SYSLOG = server.address
    _sealed("a")

    assert streaming.run() == 0
    assert (streaming.status().position, streaming.status().sent_at) == (0, None)
    assert "refused" in streaming.status().error


def test_a_crash_after_sending_sends_the_batch_again(
    server: SyslogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sealed("a", "b")

    def crash() -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("portal.core.clock.now", crash)
        with pytest.raises(RuntimeError, match="killed"):
            streaming.run()
    assert StreamPosition.objects.get().position == 0

    streaming.run()
    assert _positions(server) == [1, 2, 1, 2]
    assert streaming.status().position == 2


def test_another_server_gets_the_trail_from_its_beginning(
    server: SyslogServer, settings: Any
) -> None:
    _sealed("a")
    streaming.run()

    with running() as other:
        settings.SLIPWAY_AUDIT_SYSLOG = other.address
        assert streaming.run() == 1

    assert _positions(other) == [1]


def test_tls_needs_a_certificate_that_is_trusted(tmp_path: Path, settings: Any) -> None:
    authority = Authority(tmp_path / "ca")
    pair = authority.sign("syslog")
    _sealed("a")
    with running(pair.certificate, pair.key) as server:
        settings.SLIPWAY_AUDIT_SYSLOG = server.address

        assert streaming.run() == 0
        assert "its certificate is not trusted" in streaming.status().error
        assert server.messages == []

        settings.SLIPWAY_AUDIT_SYSLOG_CA = str(authority.path)
        assert streaming.run() == 1

    assert _positions(server) == [1]


def test_without_a_server_nothing_is_sent_or_written() -> None:
    _sealed("a")

    assert streaming.run() == 0
    assert (StreamPosition.objects.count(), streaming.status()) == (0, None)


@pytest.mark.parametrize(
    "address", ["siem:514", "udp://siem:514", "tls://siem", "tls://siem:x", "tcp://siem:514/path"]
)
def test_an_address_that_cannot_be_used_is_reported_at_start(address: str, settings: Any) -> None:
    settings.SLIPWAY_AUDIT_SYSLOG = address

    [error] = audit_syslog_is_an_address(None)

    assert error.id == "slipway.E002"
    assert error.msg.endswith("Write tls://host:6514, or tcp://host:514 inside the network.")


def test_an_address_with_a_port_is_accepted(settings: Any) -> None:
    settings.SLIPWAY_AUDIT_SYSLOG = "tls://siem.example.org:6514"

    assert audit_syslog_is_an_address(None) == []
    assert syslog.parse("tcp://siem:514") == syslog.SyslogTarget("siem", 514, is_tls=False)
