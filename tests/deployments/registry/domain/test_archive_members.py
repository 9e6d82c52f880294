"""Members of an archive that no reader may follow are reported, also where their content is harmless."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest

from deployments.registry.domain.scanning import archives
from deployments.registry.domain.scanning.findings import Findings


def scan(*members: zipfile.ZipInfo) -> Findings:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for member in members:
            made.writestr(member, b"harmless")
    archive = archives.open_zip(io.BytesIO(out.getvalue()))
    assert archive is not None
    findings = Findings()
    archives.scan(archive, len(out.getvalue()), findings)
    return findings


def link() -> zipfile.ZipInfo:
    made = zipfile.ZipInfo("weights.bin")
    made.external_attr = (stat.S_IFLNK | 0o777) << 16
    return made


@pytest.mark.parametrize(
    "name", ["../weights.bin", "a/../../weights.bin", "/weights.bin", "C:weights.bin", "a\\..\\b"]
)
def test_a_member_outside_of_the_archive_is_named(name: str) -> None:
    assert scan(zipfile.ZipInfo(name)).problem == f"member {name} points outside the archive"


def test_a_link_is_named() -> None:
    assert scan(link()).problem == "member weights.bin is a link"


def test_harmless_members_are_not() -> None:
    assert scan(zipfile.ZipInfo("a/weights.bin"), zipfile.ZipInfo("a..b")).problem == ""
