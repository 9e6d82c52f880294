"""Get and list, with selectors, pages and the Table format."""

import base64
import json
from dataclasses import dataclass

from slipway_localcluster import event_forms, selectors, tables
from slipway_localcluster.discovery import EVENTS_GROUP
from slipway_localcluster.errors import BadRequest, JsonObject
from slipway_localcluster.requests import Query, Resource, wants_table
from slipway_localcluster.selectors import Selector
from slipway_localcluster.store import Store


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """The representation of objects in one response."""

    resource: Resource
    is_table: bool
    include: str

    def render_object(self, obj: JsonObject) -> JsonObject:
        if self.is_table:
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return tables.render(self.resource.kind, [obj], metadata, self.include)
        return event_forms.to_new(obj) if self.resource.is_new_event else obj

    def render_event(self, obj: JsonObject) -> JsonObject:
        # A bookmark has no row, which kubectl would print.
        if self.is_table and "uid" not in obj["metadata"]:
            return tables.render(self.resource.kind, [], obj["metadata"], self.include)
        return self.render_object(obj)

    def render_list(self, objects: list[JsonObject], metadata: JsonObject) -> JsonObject:
        kind = self.resource.kind
        if self.is_table:
            return tables.render(kind, objects, metadata, self.include)
        is_new = self.resource.is_new_event
        return {
            "kind": f"{kind.kind}List",
            "apiVersion": f"{EVENTS_GROUP}/v1" if is_new else kind.api_version,
            "metadata": metadata,
            "items": [event_forms.to_new(item) for item in objects] if is_new else objects,
        }


def output_format_of(resource: Resource, accept: str, query: Query) -> OutputFormat:
    return OutputFormat(resource, wants_table(accept), query.get("includeObject", "Metadata"))


def selector_of(resource: Resource, query: Query) -> Selector:
    fields = query.get("fieldSelector", "")
    if resource.is_new_event:
        fields = fields.replace("regarding.", "involvedObject.")
    selector = selectors.parse(resource.kind, query.get("labelSelector", ""), fields)
    if resource.target.name is None:
        return selector
    # The deprecated watch of one object, by its own path.
    named = ("metadata.name", True, resource.target.name)
    return Selector(selector.label_tests, (*selector.field_tests, named))


def list_objects(
    store: Store, resource: Resource, query: Query, output: OutputFormat
) -> JsonObject:
    selector = selector_of(resource, query)
    objects, revision = store.snapshot(resource.kind, resource.target.namespace)
    matching = [item for item in objects if selector.matches(item)]
    metadata: JsonObject = {"resourceVersion": str(revision)}
    token = query.get("continue")
    if token:
        after = _decode(token)
        matching = [item for item in matching if _position(item) > after]
    limit = int(query["limit"]) if query.get("limit", "").isdigit() else 0
    if limit and len(matching) > limit:
        metadata["remainingItemCount"] = len(matching) - limit
        matching = matching[:limit]
        metadata["continue"] = _encode(_position(matching[-1]))
    return output.render_list(matching, metadata)


def _position(obj: JsonObject) -> list[str]:
    return [obj["metadata"].get("namespace", ""), obj["metadata"]["name"]]


def _encode(position: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _decode(token: str) -> list[str]:
    try:
        position = json.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise BadRequest("continue: the token cannot be read") from error
    if not isinstance(position, list):
        raise BadRequest("continue: the token cannot be read")
    return [str(part) for part in position]
