"""The components of which pages are made, with their CSS classes. The page /ui/ shows each in each state.

A test holds this list against the layer *components* of static/css/slipway.css, against what /ui/ shows, and
against the templates of all pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Component:
    """A component. Its example, with all of its classes, is templates/gallery/<slug>.html."""

    slug: str
    title: str
    # One sentence: when a page takes this one.
    use: str
    classes: frozenset[str]
    # Classes that only a script sets, and those that arrange this component on one page: the example has neither.
    script_classes: frozenset[str] = frozenset()
    page_classes: frozenset[str] = frozenset()

    @property
    def all_classes(self) -> frozenset[str]:
        return self.classes | self.script_classes | self.page_classes

    @property
    def template(self) -> str:
        return f"gallery/{self.slug}.html"


def _define(
    slug: str, title: str, use: str, classes: str, *, scripts: str = "", pages: str = ""
) -> Component:
    parts = [frozenset(names.split()) for names in (classes, scripts, pages)]
    return Component(slug, title, use, *parts)


FRAME: Final = _define(
    "frame",
    "Frame",
    "Rail, top bar and search are around every page, so also around this one.",
    "icon-btn bell drawer-open brand jump-results menu items note theme-switch to-light to-dark"
    " theme-choice",
    # The number of open alerts.
    pages="count",
)
COMPONENTS: Final = (
    FRAME,
    _define(
        "head",
        "Head of a page",
        "A title, one line about it, and the buttons that make sense now.",
        "head actions sub rollout-buttons btn",
    ),
    _define(
        "buttons",
        "Button",
        "One primary for what the page is for; danger for what ends something; quiet for ways out.",
        "btn primary danger quiet small wide icon-btn copy row-flex",
        scripts="htmx-request copied",
    ),
    _define(
        "states",
        "State",
        "A stored state: its colour is its meaning, and its word is always there.",
        "pill ok warn bad run busy wait",
    ),
    _define(
        "chips",
        "Chip",
        "A short property of a thing: an alias, a source, a simulated part.",
        "chip alias sim ok warn bad row-flex",
    ),
    _define(
        "values",
        "Value",
        "Numbers as people write them, with the exact one on hover; what is not known says so.",
        "unknown mono two sub dim link num who keys",
    ),
    _define(
        "card",
        "Card",
        "A part of a page with its own heading; further settings are folded in it.",
        "card body right link line sub",
        pages="sources",
    ),
    _define(
        "tile",
        "Figure",
        "The few numbers of a page: tiles at its top, figures in a card, facts as a list.",
        "tile trend figures facts sums left meter two",
        pages="tiles",
    ),
    _define(
        "meter",
        "Meter, trend line and scores",
        "A share of a whole with where it should be by now; a trend; probabilities by label.",
        "meter fill mark warn bad ok idle spark flat scores num two",
        pages="answered",
    ),
    _define(
        "traffic",
        "Traffic",
        "The requested split, what was observed, and what is expected at this weight.",
        "traffic bar stable candidate slim mirrored w-0 legend observed-stable observed-candidate"
        " observed-mirrored observed-range mini part off copies",
    ),
    _define(
        "table",
        "Table",
        "Sorted and filtered in the address; on a phone each row becomes a card.",
        "cards num two beside check-col blank compact packed",
        pages="objects more stack changes audit timeline savings split prices gpu-name guards plan-fields"
        " plan-steps input unit row-flex compare group same requests rules halves",
    ),
    _define(
        "filters",
        "Filters and pages",
        "A search, choices and the pages of a list; the address has them all.",
        "filters follow plain pages segments choices",
    ),
    _define(
        "tabs",
        "Tabs",
        "The parts of one thing, each with an address of its own.",
        "tabs",
    ),
    _define(
        "fields",
        "Field",
        "Label, input with its unit, hint and error, wired for screen readers.",
        "field label optional hint err input unit percent plain number check part ticks",
    ),
    _define(
        "choice",
        "Choice",
        "A few named options with their consequences.",
        "choice roomy off",
        pages="plan-choice cost",
    ),
    _define(
        "fold",
        "Fold",
        "Settings that most people leave as they are, behind their values in words.",
        "fold in stack sub",
        pages="folds bad-text twin twin-text input code-text",
    ),
    _define(
        "checks",
        "Checklist",
        "What passes, fails or is not known, each with its fix; what happens next, in order.",
        "checks todo good bad-text warn-text",
        pages="first-day btn",
    ),
    _define(
        "timeline",
        "Timeline",
        "What someone did or what broke, coloured by meaning; also what people wrote.",
        "timeline decision ok bad warn neutral now next",
    ),
    _define(
        "rollout",
        "Rollout",
        "The steps of a rollout as a ladder, as drawn stairs, and its outcome.",
        "ladder done now failed stairs watch axis outcome ok bad",
    ),
    _define(
        "board",
        "Board",
        "Environments side by side, with what serves in each.",
        "lanes figures small",
    ),
    _define(
        "gpus",
        "GPUs",
        "Nodes as rows of GPUs by utilisation; free ones are lighter than busy ones.",
        "nodes node row gpu part free tainted sim use-unknown use-0 use-1 use-2 use-3 use-4"
        " scale fleet-map h0 h1 h2 h3 h4 h5",
        pages="node-gpus",
    ),
    _define(
        "chart",
        "Chart",
        "Lines or bars with their numbers as a table; gaps say why, ticks say what changed.",
        "chart plot legend instant scroll gap charts",
        scripts="sheet failed visible key value crosshair zoom",
        pages="segments",
    ),
    _define(
        "banner",
        "Banner and toast",
        "What happened and what to do. A toast is a banner; so is the age of an old reading.",
        "banner ok bad info close stuck btn",
    ),
    _define(
        "empty",
        "Empty state",
        "Says what is missing and leads to the next step.",
        "empty btn body",
        scripts="over",
    ),
    _define(
        "files",
        "Files of an upload",
        "Each with its size and progress; it can be left out until the upload starts.",
        "chosen icon-btn btn",
        scripts="locked",
    ),
    _define(
        "code",
        "Code and changes",
        "Text to copy, what changed in it, and what a program logged.",
        "code copy wrapped diff gap same changes log error warning debug log-foot",
        pages="long grid",
    ),
    _define(
        "prose",
        "Document",
        "What people or we wrote, and the reference of the REST API.",
        "prose document scroll operations operation verb get post put patch delete link two cards"
        " api-fields",
        pages="stick",
    ),
    _define(
        "sign",
        "Sign-in card",
        "For people without a session, alone on its page.",
        "sign brand qr",
    ),
)
