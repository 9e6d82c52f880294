"""Values that are defined once: a field has its type, default, bounds, label and help in one place.

Reading (here), the REST schema (portal/api/definition_serializers.py) and form fields
(portal/ui/definition_fields.py) follow from it. Pure, so that every domain may build on it.
"""

from portal.core.definitions.base import Definition
from portal.core.definitions.fields import (
    FieldDefinition,
    deep_fields_of,
    fields_of,
    setting,
    value_at,
)
from portal.core.definitions.refusals import (
    Rejected,
    Rule,
    check,
    check_names,
    inside,
    rejection_of,
)

__all__ = [
    "Definition",
    "FieldDefinition",
    "Rejected",
    "Rule",
    "check",
    "check_names",
    "deep_fields_of",
    "fields_of",
    "inside",
    "rejection_of",
    "setting",
    "value_at",
]
