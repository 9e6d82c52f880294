"""The bucket of artifacts: what the portal can do in it, how it is set up, and what the role may not."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from deployments.registry.gateways import bucket_setup, object_store, role_limits
from deployments.registry.gateways.object_store_errors import ArtifactError
from portal.doctor.lines import Line, note, ok, report_failed, report_unknown
from portal.doctor.registry import check

_AREA: Final = "bucket"
_REACH: Final = (
    "Check SLIPWAY_S3_BUCKET, SLIPWAY_S3_REGION and SLIPWAY_S3_ENDPOINT_URL, and that the role of the pods "
    "has the policy that `manage.py aws_policy portal` prints."
)
_BYTES: Final = b"manage.py doctor"
# As bucket_setup names them.
_NEEDED: Final = frozenset({"Versions", "Uploads from browsers"})


@check(_AREA, "Objects", fix=_REACH)
def objects() -> Iterator[Line]:
    """Write, read and delete one object, in a folder of its own that nobody reads."""
    store = object_store.s3_store()
    folder = f"uploads/doctor/{secrets.token_hex(8)}/"
    version = store.put(f"{folder}probe", _BYTES, content_type="text/plain")
    try:
        is_same = b"".join(store.read(f"{folder}probe", version or "null")) == _BYTES
    finally:
        store.delete_all_versions(folder)
    if is_same and not store.list_newest(folder):
        yield ok("Objects", f"written, read and deleted in {store.bucket}")
    else:
        yield report_failed("Objects", f"{store.bucket} does not return what was written", _REACH)


@check(_AREA, "Set-up", fix=_REACH)
def set_up() -> Iterator[Line]:
    origin = settings.SLIPWAY_PUBLIC_URL
    findings = bucket_setup.check(
        object_store.s3_store(), origins=[origin] if origin else [], writers=[]
    )
    fix = (
        f"As an administrator of the bucket: `manage.py bucket_setup --origin {origin or 'https://…'} "
        "--writer ARN-of-the-portal's-role`."
    )
    for finding in findings:
        if finding.ok:
            yield ok(finding.name, finding.detail)
        elif finding.ok is False and finding.name in _NEEDED:
            yield report_failed(finding.name, finding.detail, fix)
        elif finding.ok is False:
            yield note(finding.name, finding.detail, fix)
        elif finding.detail.startswith("not set"):
            yield note(
                finding.name, "anyone who may write to the bucket may replace served files", fix
            )
        else:
            yield ok(finding.name, "set")


@check(_AREA, "Encryption", fix=_REACH)
def encryption() -> Iterator[Line]:
    store = object_store.s3_store()
    fix = "Turn on default encryption of the bucket: SSE-S3, or SSE-KMS with your own key."
    try:
        algorithm = role_limits.encryption(store.client, store.bucket)
    except ArtifactError as error:
        yield report_unknown("Encryption", str(error), fix)
        return
    if algorithm:
        yield ok("Encryption", f"new objects are encrypted with {algorithm}")
    else:
        yield note("Encryption", "objects are stored unencrypted", fix)


@check(_AREA, "Browsers", fix=_REACH)
def browsers() -> Iterator[Line]:
    """A page on HTTPS may not send files to plain HTTP."""
    address = settings.SLIPWAY_S3_BROWSER_ENDPOINT_URL
    if address and settings.SLIPWAY_HTTPS and urlsplit(address).scheme != "https":
        yield report_failed(
            "Browsers",
            f"{address} is not https://, so browsers refuse to upload there",
            "Set SLIPWAY_S3_BROWSER_ENDPOINT_URL to an address with TLS.",
        )


@check(_AREA, "Least privilege", fix=_REACH)
def least_privilege() -> Iterator[Line]:
    if settings.SLIPWAY_S3_ENDPOINT_URL:
        fix = "Give the portal an account of the store that can read, write and list this bucket only."
        yield report_unknown("Least privilege", "only AWS says what an account may do", fix)
        return
    try:
        excess = role_limits.excess(settings.SLIPWAY_S3_BUCKET)
    except role_limits.NotSimulated as error:
        fix = "Allow iam:SimulatePrincipalPolicy on the portal's own role, or look at its policies yourself."
        yield report_unknown("Least privilege", str(error), fix)
        return
    if excess:
        fix = "Replace the policies of the role with the output of `manage.py aws_policy portal`."
        yield report_failed("Least privilege", f"the portal's role may {', '.join(excess)}", fix)
    else:
        yield ok("Least privilege", "the role cannot switch off what protects the bucket")
