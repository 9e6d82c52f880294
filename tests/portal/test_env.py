from __future__ import annotations

from pathlib import Path

import pytest

from portal import env


def test_a_missing_secret_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLIPWAY_X", raising=False)

    with pytest.raises(
        env.BadEnvironment, match=r"SLIPWAY_X is not set\. Set SLIPWAY_X or SLIPWAY_X_FILE"
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
