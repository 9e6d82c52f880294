"""Create, replace, patch, apply and delete: validation and ownership before the store."""

import secrets
import string
import uuid
from dataclasses import dataclass

from slipway_localcluster import (
    admission,
    bodies,
    bootstrap,
    pod_security,
    preconditions,
    validation,
)
from slipway_localcluster.apply import apply
from slipway_localcluster.decoding import require_applicable, require_decodable
from slipway_localcluster.errors import BadRequest, Conflict, Forbidden, JsonObject
from slipway_localcluster.kinds import JOB, KINDS, NAMESPACE, SECRET, Kind
from slipway_localcluster.managed_fields import Manager, record_update
from slipway_localcluster.objects import not_found, timestamp
from slipway_localcluster.schemas.lookup import schema_of
from slipway_localcluster.store import Store
from slipway_localcluster.topology import Topology

_SUFFIX_CHARACTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class Target:
    """One object, or a collection when it has no name."""

    kind: Kind
    namespace: str | None
    name: str | None = None
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    manager: str
    validation: str = "Warn"
    is_dry_run: bool = False
    is_forced: bool = False
    uid: str | None = None
    resource_version: str | None = None
    propagation: str = "Background"
    grace_period_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    obj: JsonObject
    is_new: bool = False
    warnings: tuple[str, ...] = ()


class Writer:
    """All writes of the API; the controllers write to the store directly."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, target: Target, body: JsonObject, options: WriteOptions) -> Written:
        obj, warnings = self._incoming(target, body, options)
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = "".join(secrets.choice(_SUFFIX_CHARACTERS) for _ in range(5))
            metadata["name"] = f"{metadata['generateName']}{suffix}"
        for field in ("uid", "resourceVersion", "managedFields"):
            metadata.pop(field, None)
        record_update(None, obj, Topology(target.kind), _author(target, options, "Update"))
        with self._store.exclusive():
            return self._written(target, self._create(target, obj, options), warnings, is_new=True)

    def update(self, target: Target, body: JsonObject, options: WriteOptions) -> Written:
        obj, warnings = self._incoming(target, body, options)
        with self._store.exclusive():
            live = self._live(target)
            author = _author(target, options, "Update")
            preconditions.require_replaceable(target.kind, live, obj)
            if not target.subresource:
                obj = bodies.keep_server_fields(target.kind, obj, live)
            return self._written(target, self._save(target, live, obj, author, options), warnings)

    def patch(
        self, target: Target, raw: bytes, content_type: str, options: WriteOptions
    ) -> Written:
        if content_type == bodies.APPLY:
            return self._apply(target, bodies.parse_yaml(raw), options)
        document = bodies.parse_json(raw)
        with self._store.exclusive():
            live = self._live(target)
            patched = bodies.patch(target.kind, live, document, content_type)
            patched["metadata"].setdefault("name", live["metadata"]["name"])
            patched = bodies.patched_part(target.kind, target.subresource, live, patched)
            validation.require_readable_patch(target.kind, patched)
            obj, warnings = self._incoming(target, patched, options)
            author = _author(target, options, "Update")
            return self._written(target, self._save(target, live, obj, author, options), warnings)

    def _apply(self, target: Target, body: JsonObject, options: WriteOptions) -> Written:
        if (body.get("metadata") or {}).get("managedFields"):
            raise BadRequest("metadata.managedFields must be nil")
        applied = bodies.identify(target.kind, target.namespace, target.name, body)
        require_applicable(target.kind, applied, schema_of(target.kind))
        if target.kind is SECRET:
            bodies.encode_string_data(applied)
        topology = Topology(target.kind)
        author = _author(target, options, "Apply")
        if not target.subresource and target.kind.has_status:
            applied.pop("status", None)
        with self._store.exclusive():
            live = self._store.find(target.kind, target.namespace, str(target.name))
            if live is None and target.subresource:
                raise not_found(target.kind, str(target.name))
            merged = apply(live, applied, topology, author, force=options.is_forced)
            if live is None:
                if applied["metadata"].get("uid") or applied["metadata"].get("resourceVersion"):
                    raise Conflict("the object to be applied does not exist any more")
                created = self._create(target, merged, options)
                return self._written(target, created, is_new=True)
            if merged is live:
                return self._written(target, live)
            return self._written(target, self._save(target, live, merged, None, options))

    def _written(
        self,
        target: Target,
        obj: JsonObject,
        warnings: tuple[str, ...] = (),
        *,
        is_new: bool = False,
    ) -> Written:
        if target.namespace and not target.subresource:
            namespace = self._store.get(NAMESPACE, None, target.namespace)
            warnings = (*warnings, *pod_security.find_warnings(target.kind, obj, namespace))
        return Written(obj, is_new=is_new, warnings=warnings)

    def delete(self, target: Target, options: WriteOptions) -> JsonObject:
        name = str(target.name)
        with self._store.exclusive():
            live = self._store.get(target.kind, target.namespace, name)
            preconditions.require(
                target.kind, live, uid=options.uid, version=options.resource_version
            )
            if options.is_dry_run:
                return live
            if options.propagation == "Orphan":
                self._orphan_dependents(live)
            return self._store.delete(
                target.kind,
                target.namespace,
                name,
                uid=options.uid,
                grace_period_seconds=options.grace_period_seconds,
            )

    def _orphan_dependents(self, owner: JsonObject) -> None:
        uid = owner["metadata"]["uid"]
        for kind in KINDS:
            for item in self._store.list(kind, owner["metadata"].get("namespace")):
                owners = item["metadata"].get("ownerReferences") or []
                kept = [reference for reference in owners if reference.get("uid") != uid]
                if len(kept) != len(owners):
                    item["metadata"]["ownerReferences"] = kept
                    self._store.replace(kind, item)

    def _live(self, target: Target) -> JsonObject:
        return self._store.get(target.kind, target.namespace, str(target.name))

    def _incoming(
        self, target: Target, body: JsonObject, options: WriteOptions
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """Return the body as an object of the target's kind, without unknown fields."""
        identified = bodies.identify(target.kind, target.namespace, target.name, body)
        require_decodable(target.kind, identified, schema_of(target.kind))
        checked = validation.drop_unknown_fields(
            target.kind, identified, is_strict=options.validation == "Strict"
        )
        if target.kind is SECRET:
            bodies.encode_string_data(checked.obj)
        warns = options.validation == "Warn"
        return checked.obj, tuple(f'unknown field "{path}"' for path in checked.unknown if warns)

    def _create(self, target: Target, obj: JsonObject, options: WriteOptions) -> JsonObject:
        kind = target.kind
        if kind.has_status:
            obj.pop("status", None)
        if kind is NAMESPACE:
            bootstrap.complete_namespace(obj)
        if kind is JOB:
            bootstrap.complete_job(obj)
        if kind.namespaced:
            self._require_open_namespace(str(target.namespace), obj)
        admission.require_admitted(self._store, kind, obj)
        validation.require_valid(kind, obj)
        if options.is_dry_run:
            return self._preview_creation(kind, obj)
        created = self._store.create(kind, obj)
        if kind is NAMESPACE:
            bootstrap.create_service_account(self._store, created["metadata"]["name"])
        return created

    def _preview_creation(self, kind: Kind, obj: JsonObject) -> JsonObject:
        metadata = obj["metadata"]
        if self._store.find(kind, metadata.get("namespace"), metadata["name"]) is not None:
            # The store refuses it with the message of a real creation.
            return self._store.create(kind, obj)
        fixed = {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp(), "generation": 1}
        return obj | {"metadata": metadata | fixed}

    def _require_open_namespace(self, namespace: str, obj: JsonObject) -> None:
        existing = self._store.get(NAMESPACE, None, namespace)
        if "deletionTimestamp" in existing["metadata"]:
            name = obj["metadata"]["name"]
            raise Forbidden(
                f'"{name}" is forbidden: unable to create new content in namespace {namespace} '
                "because it is being terminated"
            )

    def _save(
        self,
        target: Target,
        live: JsonObject,
        obj: JsonObject,
        author: Manager | None,
        options: WriteOptions,
    ) -> JsonObject:
        obj = bodies.merge_into(live, obj, target.kind, target.subresource)
        if author is not None:
            record_update(live, obj, Topology(target.kind), author)
        preconditions.require_current(target.kind, live, obj)
        if target.subresource == "status":
            validation.require_valid_status(target.kind, obj)
        else:
            validation.require_valid(target.kind, obj)
            validation.require_valid_change(target.kind, live, obj)
        if options.is_dry_run:
            return obj
        if target.subresource == "status":
            return self._store.replace_status(target.kind, obj)
        return self._store.replace(target.kind, obj)


def _author(target: Target, options: WriteOptions, operation: str) -> Manager:
    subresource = target.subresource
    return Manager(
        name=options.manager,
        operation=operation,
        api_version=target.kind.api_version,
        subresource=subresource,
        time=timestamp(),
        fields=frozenset(),
    )
