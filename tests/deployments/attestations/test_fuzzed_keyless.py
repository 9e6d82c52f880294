"""No value anywhere in a keyless bundle lets another error out, and none that matters passes for proof."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.attestations.domain import bundles
from deployments.attestations.domain.bundles import AttestationInvalid
from deployments.attestations.domain.log_entries import NotProved
from deployments.attestations.gateways import sigstore_verifier
from tests.deployments.attestations import signing
from tests.deployments.attestations.attesting import SHA
from tests.deployments.attestations.keyless import model
from tests.deployments.attestations.sigstore_instance import Sigstore

AT = datetime(2026, 11, 25, 12, tzinfo=UTC)
OURS = Sigstore(AT)
ROOT = OURS.trusted_root()
GOOD, FOLDER, STAMPED = (
    json.loads(text)
    for text in (
        OURS.blob(SHA, AT),
        OURS.statement(model(), AT),
        OURS.blob(SHA, AT, is_v2=True),
    )
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for name, part in parts if isinstance(value, dict | list) else ():
        found.append((*path, name))
        if isinstance(part, dict | list):
            found += places(part, (*path, name))
    return found


JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.text(max_size=20),
    st.binary(max_size=60).map(signing.b64),
    st.sampled_from([[], {}, [{}], [[]], {"a": 1}, "9" * 19, "9" * 400, "-1", "0"]),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([GOOD, FOLDER, STAMPED]), st.data())
def test_no_value_lets_another_error_out_or_is_taken_for_proof(good: Any, data: Any) -> None:
    document = copy.deepcopy(good)
    *path, last = data.draw(st.sampled_from(places(document)))
    part = document
    for name in path:
        part = part[name]
    value = data.draw(JSON)
    is_same = part[last] == value
    part[last] = value

    try:
        bundle = bundles.parse(document)
        sigstore_verifier.verify(document, bundle.content, ROOT)
    except (NotProved, AttestationInvalid):
        return
    # What is not signed may differ: an empty list instead of none, the name of the media type's older form.
    harmless = {"keyid", "timestampVerificationData", "rfc3161Timestamps", "logIndex", "name"}
    assert is_same or last in harmless or value in ([], None, {}), (path, last, value)
