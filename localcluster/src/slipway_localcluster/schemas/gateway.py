"""Schemas of the Gateway API's kinds for the fields that the portal writes, and those beside them.

From the documentation of the Gateway API, v1. With SLIPWAY_CRD_DIR the published ones are used.
"""

from slipway_localcluster.schemas.gateway_references import (
    GROUP,
    HOST,
    KIND,
    LABEL,
    NAME,
    PARENTS,
    PORT,
)
from slipway_localcluster.schemas.schema import (
    CelRule,
    Schema,
    choice,
    define_closed,
    define_open,
    list_of,
    number,
    text,
)

_TOKEN = text(r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$", least=1, most=256)
_DURATION = text(r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")


def _header(value_size: int) -> Schema:
    """To be matched."""
    fields = {
        "type": choice("Exact", "RegularExpression"),
        "name": _TOKEN,
        "value": text(least=1, most=value_size),
    }
    return define_closed(fields, "name", "value")


def _has_prefix_match(filters: str, field: str) -> str:
    """Return the CEL expression for whether a filter replaces the prefix of the path."""
    return (
        f"(has({filters}) && {filters}.exists(f, has(f.{field}) && has(f.{field}.path)"
        f" && f.{field}.path.type == 'ReplacePrefixMatch'))"
    )


_PATH_CHARACTERS = "^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$"
_PATH_RULES = (
    CelRule("!self.literal || self.value.startsWith('/')", "value must be an absolute path"),
    *(
        CelRule(f"!self.literal || !self.value.contains('{part}')", f"must not contain '{part}'")
        for part in ("//", "/./", "/../", "%2f", "%2F", "#")
    ),
    *(
        CelRule(f"!self.literal || !self.value.endsWith('{part}')", f"must not end with '{part}'")
        for part in ("/..", "/.")
    ),
    CelRule(
        f'!self.literal || self.value.matches(r"""{_PATH_CHARACTERS}""")',
        "must only contain valid characters",
    ),
)
_LITERAL = "((has(self.type) ? self.type : 'PathPrefix') != 'RegularExpression')"
_PATH = define_closed(
    {
        "type": choice("Exact", "PathPrefix", "RegularExpression"),
        "value": text(most=1024),
    },
    rules=tuple(
        CelRule(
            f"!has(self.value) || ({rule.expression.replace('self.literal', _LITERAL)})",
            rule.message,
        )
        for rule in _PATH_RULES
    ),
)
_MATCH = define_closed(
    {
        "path": _PATH,
        "headers": list_of(_header(4096), most=16, keys=("name",)),
        "queryParams": list_of(_header(1024), most=16, keys=("name",)),
        "method": choice(
            "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"
        ),
    }
)
_PORT_RULE = CelRule(
    "has(self.port) || (has(self.kind) && self.kind != 'Service')"
    " || (has(self.group) && self.group != '')",
    "Must have port for Service reference",
)
_BACKEND_FIELDS = {
    "group": GROUP,
    "kind": KIND,
    "name": NAME,
    "namespace": text(rf"^{LABEL}$", least=1, most=63),
    "port": PORT,
}
_BACKEND_REFERENCE = define_closed(_BACKEND_FIELDS, "name", rules=(_PORT_RULE,))
_NEW_PATH = define_closed(
    {
        "type": choice("ReplaceFullPath", "ReplacePrefixMatch"),
        "replaceFullPath": text(most=1024),
        "replacePrefixMatch": text(most=1024),
    },
    "type",
    rules=tuple(
        CelRule(
            f"has(self.{field}) == (self.type == '{kind}')",
            f"{field} must be specified when type is '{kind}', and only then",
        )
        for field, kind in (
            ("replaceFullPath", "ReplaceFullPath"),
            ("replacePrefixMatch", "ReplacePrefixMatch"),
        )
    ),
)
_NEW_HEADER = define_closed({"name": _TOKEN, "value": text(least=1, most=4096)}, "name", "value")
_HEADERS = list_of(_NEW_HEADER, most=16, keys=("name",))
_MODIFIER = define_closed(
    {"set": _HEADERS, "add": _HEADERS, "remove": list_of(text(), most=16, is_set=True)},
)
_MIRROR = define_closed(
    {
        "backendRef": _BACKEND_REFERENCE,
        "percent": number(0, 100),
        "fraction": define_closed(
            {"numerator": number(0), "denominator": number(1, default=100)},
            "numerator",
            rules=(
                CelRule(
                    "self.numerator <= (has(self.denominator) ? self.denominator : 100)",
                    "numerator must be less than or equal to denominator",
                ),
            ),
        ),
    },
    "backendRef",
    rules=(
        CelRule(
            "!(has(self.percent) && has(self.fraction))",
            "Only one of percent or fraction may be specified in HTTPRequestMirrorFilter",
        ),
    ),
)
_HOSTNAME = text(rf"^{HOST}$", least=1, most=253)
_REDIRECT = define_closed(
    {
        "scheme": choice("http", "https"),
        "hostname": _HOSTNAME,
        "path": _NEW_PATH,
        "port": PORT,
        "statusCode": Schema(number().types, enum=(301, 302, 303, 307, 308)),
    }
)
# The field of a filter that each type of filter needs.
_FILTERS: dict[str, tuple[str, Schema]] = {
    "RequestHeaderModifier": ("requestHeaderModifier", _MODIFIER),
    "ResponseHeaderModifier": ("responseHeaderModifier", _MODIFIER),
    "RequestMirror": ("requestMirror", _MIRROR),
    "RequestRedirect": ("requestRedirect", _REDIRECT),
    "URLRewrite": ("urlRewrite", define_closed({"hostname": _HOSTNAME, "path": _NEW_PATH})),
    "ExtensionRef": (
        "extensionRef",
        define_closed({"group": GROUP, "kind": KIND, "name": NAME}, "group", "kind", "name"),
    ),
    "CORS": ("cors", define_open()),
}
_FILTER = define_closed(
    {"type": choice(*_FILTERS), **dict(_FILTERS.values())},
    "type",
    rules=tuple(
        CelRule(
            f"has(self.{field}) == (self.type == '{kind}')",
            f"filter.{field} must be specified for {kind} filter.type, and only for it",
        )
        for kind, (field, _) in _FILTERS.items()
    ),
)
_ONCE = ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite", "CORS")
_FILTER_LIST = list_of(
    _FILTER,
    most=16,
    rules=(
        *(
            CelRule(f"self.filter(f, f.type == '{kind}').size() <= 1", f"{kind} cannot be repeated")
            for kind in _ONCE
        ),
        CelRule(
            "!(self.exists(f, f.type == 'RequestRedirect')"
            " && self.exists(f, f.type == 'URLRewrite'))",
            "May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite",
        ),
    ),
)
_BACKEND = define_closed(
    {**_BACKEND_FIELDS, "weight": number(0, 1_000_000), "filters": _FILTER_LIST},
    "name",
    rules=(_PORT_RULE,),
)
_TIMEOUTS = define_closed(
    {"request": _DURATION, "backendRequest": _DURATION},
    rules=(
        CelRule(
            "!(has(self.request) && has(self.backendRequest)"
            " && duration(self.request) != duration('0s')"
            " && duration(self.backendRequest) > duration(self.request))",
            "backendRequest timeout cannot be longer than request timeout",
        ),
    ),
)
_ROUTE_RULE = define_closed(
    {
        "name": text(rf"^{HOST}$", least=1, most=253),
        "matches": list_of(_MATCH, most=64),
        "filters": _FILTER_LIST,
        "backendRefs": list_of(_BACKEND, most=16),
        "timeouts": _TIMEOUTS,
    },
    rules=(
        CelRule(
            "!(has(self.backendRefs) && size(self.backendRefs) > 0 && has(self.filters)"
            " && self.filters.exists(f, has(f.requestRedirect)))",
            "RequestRedirect filter must not be used together with backendRefs",
        ),
        *(
            CelRule(
                f"!{found} || !has(self.matches) || (size(self.matches) == 1"
                " && (!has(self.matches[0].path) || !has(self.matches[0].path.type)"
                " || self.matches[0].path.type == 'PathPrefix'))",
                f"{where}hen using {kind} filter with path.replacePrefixMatch, exactly one "
                "PathPrefix match must be specified",
            )
            for kind, field in (
                ("RequestRedirect", "requestRedirect"),
                ("URLRewrite", "urlRewrite"),
            )
            for where, found in (
                ("W", _has_prefix_match("self.filters", field)),
                (
                    "Within backendRefs, w",
                    "(has(self.backendRefs) && self.backendRefs.exists(b, "
                    f"{_has_prefix_match('b.filters', field)}))",
                ),
            )
        ),
    ),
)
HTTP_ROUTE_SPEC = define_closed(
    {
        "parentRefs": PARENTS,
        "hostnames": list_of(text(rf"^(\*\.)?{HOST}$", least=1, most=253), most=16),
        "rules": list_of(
            _ROUTE_RULE,
            least=1,
            most=16,
            rules=(
                CelRule(
                    # A rule without matches has one.
                    " + ".join(
                        f"(self.size() > {place} ? (has(self[{place}].matches)"
                        f" ? self[{place}].matches.size() : 1) : 0)"
                        for place in range(16)
                    )
                    + " <= 128",
                    "While 16 rules and 64 matches per rule are allowed, the total number of "
                    "matches across all rules in a route must be less than 128",
                ),
            ),
        ),
    }
)
