"""How the Gateway API's kinds name other objects."""

from slipway_localcluster.schemas.schema import CelRule, define_closed, list_of, number, text

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
HOST = rf"{LABEL}(\.{LABEL})*"
PORT = number(1, 65535)
GROUP = text(rf"^$|^{HOST}$", most=253)
KIND = text(r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", least=1, most=63)
NAME = text(least=1, most=253)

PARENT = define_closed(
    {
        "group": GROUP,
        "kind": KIND,
        "namespace": text(rf"^{LABEL}$", least=1, most=63),
        "name": NAME,
        "sectionName": text(rf"^{HOST}$", least=1, most=253),
        "port": PORT,
    },
    "name",
)
_SAME = (
    "a.name == b.name && (has(a.kind) ? a.kind : 'Gateway') == (has(b.kind) ? b.kind : 'Gateway')"
    " && (has(a.group) ? a.group : 'gateway.networking.k8s.io')"
    " == (has(b.group) ? b.group : 'gateway.networking.k8s.io')"
    " && (has(a.namespace) ? a.namespace : '') == (has(b.namespace) ? b.namespace : '')"
)
_SECTIONS = "(has(a.sectionName) ? a.sectionName : '') == (has(b.sectionName) ? b.sectionName : '')"
# Of two parents that are the same each names a section, and another one.
PARENTS = list_of(
    PARENT,
    most=32,
    rules=(
        CelRule(
            f"self.all(a, self.exists_one(b, {_SAME} && {_SECTIONS}))",
            "sectionName must be unique when parentRefs includes 2 or more references "
            "to the same parent",
        ),
        CelRule(
            f"self.all(a, self.all(b, !({_SAME}) || has(a.sectionName) == has(b.sectionName)))",
            "sectionName must be specified when parentRefs includes 2 or more references "
            "to the same parent",
        ),
    ),
)
