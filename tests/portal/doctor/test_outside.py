"""Clusters, mail servers, sign-in providers, prices and admins; and what the command prints."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from fleet.kube.gateways.connection_probe import ProbeStep
from fleet.models import Cluster, InstancePrice
from portal.accounts.oidc.providers import Provider
from portal.core.errors import Forbidden
from portal.doctor import examination
from portal.doctor.checks import database
from portal.doctor.lines import Status
from tests.accounts import make_user
from tests.fleet.conftest import cluster, kube
from tests.fleet.fakes import FakeKube
from tests.portal.accounts.oidc.conftest import Server, process
from tests.portal.doctor.conftest import Doctor, failing
from tests.portal.notifications.listeners import mail_server

__all__ = ["cluster", "kube", "process"]

_PASSWORD = "battery-horse-9"


def test_a_cluster_that_is_well(doctor: Doctor, kube: FakeKube, cluster: Cluster) -> None:
    lines = doctor("clusters")

    assert not failing(lines)
    assert "permissions" in lines[f"Cluster {cluster.name}"].detail
    assert "Kubernetes" in lines[f"Capabilities of {cluster.name}"].detail


def test_a_cluster_that_cannot_be_reached_or_lacks_a_permission(
    doctor: Doctor, kube: FakeKube, cluster: Cluster
) -> None:
    kube.allows = lambda attributes: attributes["resource"] != "secrets"
    missing = doctor("clusters")[f"Permissions of {cluster.name}"]
    assert missing.status is Status.FAILED
    assert missing.detail.startswith("missing: create, patch, delete secrets")
    assert "cluster_rbac" in missing.fix

    kube.way = [ProbeStep("Port answers", ok=False, detail="port 443 refuses")]
    lines = doctor("clusters")
    assert failing(lines) == {f"Port answers of {cluster.name}"}


def test_no_cluster_is_a_note(doctor: Doctor) -> None:
    assert doctor("clusters")["Clusters"].status is Status.NOTE


def test_a_mail_server_that_answers_and_one_that_does_not(doctor: Doctor, settings: Any) -> None:
    assert doctor("e-mail")["Mail server"].status is Status.NOTE
    with mail_server() as server:
        settings.SLIPWAY_SMTP_URL = server.url
        lines = doctor("e-mail")
        assert lines["Mail server"].status is Status.OK
        assert failing(lines) == {"Sender"}
        settings.SLIPWAY_SMTP_FROM = "slipway@example.org"
        assert not failing(doctor("e-mail"))
        assert server.mails == []

    settings.SLIPWAY_SMTP_URL = f"smtps://ana:{_PASSWORD}@127.0.0.1:1"
    line = doctor("e-mail")["Mail server"]
    assert line.status is Status.FAILED
    assert _PASSWORD not in f"{line.detail}{line.fix}"


def test_a_provider_that_answers_one_that_does_not_and_one_that_lets_everyone_in(
    doctor: Doctor, settings: Any, process: str
) -> None:
    good = Provider(
        "lab", "Lab", Server(process).url, "portal", "hush-hush", required=(("hd", "x"),)
    )
    settings.SLIPWAY_OIDC = (good,)
    assert doctor("sign-in")["Provider lab"].status is Status.OK

    settings.SLIPWAY_OIDC = (replace(good, required=()),)
    assert doctor("sign-in")["Provider lab"].status is Status.NOTE

    settings.SLIPWAY_OIDC = (replace(good, issuer="http://127.0.0.1:1"),)
    line = doctor("sign-in")["Provider lab"]
    assert line.status is Status.FAILED
    assert "SLIPWAY_OIDC_LAB_ISSUER" in line.fix


def test_admins_and_prices(doctor: Doctor) -> None:
    assert doctor("sign-in")["Platform admins"].status is Status.FAILED
    InstancePrice.objects.all().delete()
    assert doctor("prices")["Prices"].fix == "Run `manage.py load_prices`."

    make_user(is_platform_admin=True)
    assert doctor("sign-in")["Platform admins"].status is Status.NOTE
    make_user(is_platform_admin=True)
    assert doctor("sign-in")["Platform admins"].status is Status.OK
    call_command("load_prices", stdout=io.StringIO())
    assert not failing(doctor("prices"))


def test_a_check_that_breaks_hides_no_other_and_prints_no_secret(
    doctor: Doctor, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"postgres://slipway:{_PASSWORD}@db.example.org/slipway"
    settings.SLIPWAY_REDIS_URL = f"redis://:{_PASSWORD}@127.0.0.1:1/0"

    def broken(_query: str) -> Any:
        raise ZeroDivisionError(f"cannot reach {address}, tried {_PASSWORD}")

    monkeypatch.setattr(database, "row", broken)

    lines = doctor("database")

    assert lines["Clock"].status is Status.FAILED
    assert lines["Clock"].detail == (
        "ZeroDivisionError: cannot reach postgres://[redacted]@db.example.org/slipway, tried [redacted]"
    )
    assert lines["Migrations"].status is Status.OK


@pytest.mark.django_db
def test_only_platform_admins_examine() -> None:
    with pytest.raises(Forbidden):
        examination.run(actor=make_user())


@pytest.mark.django_db
def test_the_command_prints_a_line_for_each_check_and_fails_when_one_fails() -> None:
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"^1 of 2 checks failed\.$") as failure:
        call_command("doctor", "--area=sign-in", stdout=out)
    assert failure.value.returncode == 1
    note, failed = out.getvalue().splitlines()
    assert note.startswith(
        "note    sign-in: Providers: none: people sign in with a password of the portal. Fix: "
    )
    assert failed == (
        "FAILED  sign-in: Platform admins: there is none. Fix: Run `manage.py createsuperuser`, "
        "or give a claim the role platform-admin."
    )

    make_user(is_platform_admin=True)
    out = io.StringIO()
    call_command("doctor", "--area=sign-in", "--json", stdout=out)
    document = json.loads(out.getvalue())
    assert document["healthy"] is True
    assert [row["status"] for row in document["checks"]] == ["note", "note"]
    assert {row["area"] for row in document["checks"]} == {"sign-in"}
