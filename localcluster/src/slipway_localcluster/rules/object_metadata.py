"""Metadata of every kind: owners, finalizers, annotations and generated names."""

from collections.abc import Iterator

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.kinds import Kind
from slipway_localcluster.rules.causes import forbidden, invalid, report_required
from slipway_localcluster.rules.formats import (
    LABEL,
    SUBDOMAIN,
    find_label_faults,
    is_qualified_name,
)
from slipway_localcluster.topology import NATIVE_GROUPS

_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_MOST_ANNOTATION_BYTES = 256 * 1024
# A generated name ends with five characters more.
_GENERATED_MOST = 253 - 5


def find_metadata_faults(kind: Kind, metadata: JsonObject) -> Iterator[Cause]:
    """Find faults of the metadata other than the name."""
    yield from _generated_name_faults(metadata.get("generateName") or "")
    yield from find_label_faults("metadata.labels", metadata.get("labels"))
    yield from _annotation_faults(metadata.get("annotations") or {})
    yield from _owner_faults(metadata.get("ownerReferences") or ())
    yield from _finalizer_faults(kind, metadata.get("finalizers") or ())


def find_metadata_changes(live: JsonObject, metadata: JsonObject) -> Iterator[Cause]:
    """Find the faults of new metadata beside those that are stored."""
    uid = metadata.get("uid", live["uid"])
    if uid != live["uid"]:
        yield invalid("metadata.uid", uid, "field is immutable")
    added = set(metadata.get("finalizers") or ()) - set(live.get("finalizers") or ())
    if "deletionTimestamp" in live and added:
        detail = (
            f"no new finalizers can be added if the object is being deleted, found {sorted(added)}"
        )
        yield forbidden("metadata.finalizers", detail)


def _generated_name_faults(prefix: str) -> Iterator[Cause]:
    """Find faults of a prefix of names, which may end with a dash."""
    name = prefix.removesuffix("-") + ("a" if prefix.endswith("-") else "")
    if prefix and (not SUBDOMAIN.fullmatch(name) or len(prefix) > _GENERATED_MOST):
        detail = f"must consist of labels (regex used for validation is '{LABEL.pattern}')"
        yield invalid("metadata.generateName", prefix, detail)


def _annotation_faults(annotations: JsonObject) -> Iterator[Cause]:
    for key in annotations:
        if not is_qualified_name(key.lower()):
            yield invalid("metadata.annotations", key, "must be a qualified name")
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > (
        _MOST_ANNOTATION_BYTES
    ):
        detail = f"Too long: may not be more than {_MOST_ANNOTATION_BYTES} bytes"
        yield Cause("FieldValueTooLong", detail, "metadata.annotations")


def _owner_faults(owners: list[JsonObject] | tuple[()]) -> Iterator[Cause]:
    for owner in owners:
        for field in _OWNER_FIELDS:
            if not owner.get(field):
                yield report_required(f"metadata.ownerReferences.{field}", "must not be empty")
    if sum(owner.get("controller") is True for owner in owners) > 1:
        detail = "Only one reference can have Controller set to true"
        yield invalid("metadata.ownerReferences", len(owners), detail)


def _finalizer_faults(kind: Kind, finalizers: list[str] | tuple[()]) -> Iterator[Cause]:
    for index, name in enumerate(finalizers):
        if not is_qualified_name(name):
            yield invalid("metadata.finalizers", name, "must be a qualified name")
        # Definitions of custom kinds may have names without a domain.
        elif "/" not in name and name not in _STANDARD_FINALIZERS and kind.group in NATIVE_GROUPS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", name, detail)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizers orphan and foregroundDeletion are mutually exclusive"
        yield invalid("metadata.finalizers", list(finalizers), detail)
