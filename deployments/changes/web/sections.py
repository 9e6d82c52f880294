"""The folded sections of the page, each with what its closed line says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deployments.changes.web import group_summaries
from deployments.changes.web.config_text import ConfigText
from deployments.changes.web.draft import Draft
from deployments.changes.web.form import SECTIONS, DeployForm, FormSection

# The section that has config.pbtxt beside its fields.
_CONFIG_SECTION = "batching"


@dataclass(frozen=True, slots=True)
class SectionView:
    name: str
    title: str
    # Its values in words.
    summary: str
    problem_count: int

    @property
    def template(self) -> str:
        return f"changes/_new_{self.name}.html"

    @property
    def is_open(self) -> bool:
        """Whether the server opens it: only to show what is wrong."""
        return self.problem_count > 0


def list_sections(draft: Draft, config: ConfigText | None) -> Sequence[SectionView]:
    return [
        SectionView(
            section.name,
            section.title,
            group_summaries.summarize(section, draft),
            _count_problems(section, draft.form, config),
        )
        for section in SECTIONS
    ]


def _count_problems(section: FormSection, form: DeployForm, config: ConfigText | None) -> int:
    wrong = sum(name in form.errors for name in section.fields)
    is_text_wrong = section.name == _CONFIG_SECTION and config is not None and config.is_refused
    return wrong + is_text_wrong
