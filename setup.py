"""Build the wheel with the folders beside the packages, which pyproject.toml cannot name."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ("templates", "static", "docs")


class BuildWithFolders(build_py):
    def run(self) -> None:
        """Copy the folders to where `portal.settings` looks for them in an installed portal."""
        super().run()
        for name in FOLDERS:
            target = Path(self.build_lib) / "portal" / "bundled" / name
            shutil.copytree(name, target, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithFolders})
