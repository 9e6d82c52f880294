"""Collects what the rules find in one file."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Findings:
    """The findings in a file. `names` is what the file would run, `problem` the first reason why it cannot be
    read.
    """

    names: list[str] = field(default_factory=list)
    problem: str = ""

    def runs(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)

    def cannot_read(self, problem: str) -> None:
        self.problem = self.problem or problem
