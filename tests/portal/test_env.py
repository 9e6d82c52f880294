from __future__ import annotations

from pathlib import Path

import pytest

from portal import env


def test_a_missing_secret_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLIPWAY_X", raising=False)

    with pytest.raises(
        env.BadEnvironment, match=r"SLIPWAY_X is not set\. Set it to .*, or SLIPWAY_X_FILE to"
    ):
        env.secret("SLIPWAY_X")


def test_a_secret_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hush\n")
    monkeypatch.setenv("SLIPWAY_X_FILE", str(tmp_path / "key"))

    assert env.secret("SLIPWAY_X") == "hush"


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("YES", True), ("off", False), ("", False)]
)
def test_a_flag_reads_common_spellings(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: bool
) -> None:
    monkeypatch.setenv("SLIPWAY_X", value)

    assert env.flag("SLIPWAY_X", default=not expected) is expected


def test_a_flag_that_is_no_flag_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_X", "maybe")

    with pytest.raises(env.BadEnvironment, match="SLIPWAY_X='maybe' is not a boolean"):
        env.flag("SLIPWAY_X", default=False)


def test_a_number_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_X", "ten")

    with pytest.raises(env.BadEnvironment, match="not a whole number"):
        env.integer("SLIPWAY_X", 1)


def test_a_postgres_url_is_read_with_its_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_X", "postgres://ana:p%40ss@db:5433/slip")

    database = env.database("SLIPWAY_X")

    assert {k: database[k] for k in ("NAME", "USER", "PASSWORD", "HOST", "PORT")} == {
        "NAME": "slip",
        "USER": "ana",
        "PASSWORD": "p@ss",
        "HOST": "db",
        "PORT": 5433,
    }


def test_an_unknown_database_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_X", "mysql://db/slip")

    with pytest.raises(env.BadEnvironment, match="must begin with postgres:// or sqlite://"):
        env.database("SLIPWAY_X")


def test_options_of_a_database_url_reach_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "SLIPWAY_X",
        "postgres://ana@db/slip?sslmode=verify-full&sslrootcert=/etc/a+b%20c.pem&port=5433",
    )

    database = env.database("SLIPWAY_X")

    assert database["OPTIONS"] == {"sslmode": "verify-full", "sslrootcert": "/etc/a+b c.pem"}
    assert (database["HOST"], database["PORT"]) == ("db", "5433")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgres://ana@db/slip?sslmode", "'sslmode' cannot be read"),
        ("postgres://ana@db/slip?sslmode=a&sslmode=b", "'sslmode' cannot be read"),
        ("postgres://ana@db/slip?user=bo", "names user twice"),
        ("postgres://ana@db:1/slip?host=/run", "names host twice"),
        ("sqlite:///tmp/x?mode=ro", "SQLite has no option 'mode'"),
    ],
)
def test_a_query_that_would_be_dropped_is_refused(
    url: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPWAY_X", url)

    with pytest.raises(env.BadEnvironment, match=message):
        env.database("SLIPWAY_X")


def test_servers_are_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVERS", raising=False)
    assert env.addresses("SERVERS") == {}
    monkeypatch.setenv("SERVERS", "prod=https://mlflow.example/base, lab=http://10.0.0.7:5000")
    assert env.addresses("SERVERS") == {
        "prod": "https://mlflow.example/base",
        "lab": "http://10.0.0.7:5000",
    }


@pytest.mark.parametrize(
    "text",
    [
        "https://mlflow.example",
        "Prod=https://mlflow.example",
        "prod=ftp://mlflow.example",
        "prod=https://user:pass@mlflow.example",
        "prod=https://mlflow.example?token=1",
        "prod=https://",
        "prod=https://a:99999",
        "prod=https://a,prod=https://b",
    ],
)
def test_servers_that_cannot_be_read_name_the_variable(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVERS", text)

    with pytest.raises(env.BadEnvironment, match="SERVERS") as refusal:
        env.addresses("SERVERS")
    assert "pass" not in str(refusal.value).replace("password", "")


def test_secrets_by_name_are_lines_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text("# of the servers\nprod=reader:a=b,c\n\nlab=token\n")
    monkeypatch.setenv("CREDENTIALS_FILE", str(file))
    assert env.secrets_by_name("CREDENTIALS") == {"prod": "reader:a=b,c", "lab": "token"}

    file.write_text("5ecret")
    with pytest.raises(env.BadEnvironment, match="one a line") as refusal:
        env.secrets_by_name("CREDENTIALS")
    assert "5ecret" not in str(refusal.value)
