"""Builds the wheel: the extension with maturin, and the program `awari`, with Parquet, as a script.

The environment variable AWARI_PROGRAM names a finished program to include; otherwise Cargo builds it. There are no source
distributions: both are built from the crates around this folder.
"""

import os
import pathlib
import shutil
import subprocess

import maturin
from maturin import get_requires_for_build_editable, get_requires_for_build_wheel  # noqa: F401

_PACKAGE = pathlib.Path(__file__).resolve().parent
_WORKSPACE = _PACKAGE.parent.parent
# Below the folder `data` of pyproject.toml.
_SCRIPTS = _PACKAGE / "target/program/scripts"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _make_scripts_directory()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    _make_scripts_directory()
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _place_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _place_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def _make_scripts_directory():
    """Makes the folder `data` of pyproject.toml, without which maturin reads no metadata."""
    _SCRIPTS.mkdir(parents=True, exist_ok=True)


def _place_program():
    _make_scripts_directory()
    program = _SCRIPTS / "awari"
    shutil.copy(os.environ.get("AWARI_PROGRAM") or _build_program(), program)
    program.chmod(0o755)


def _build_program():
    command = ["cargo", "build", "--release", "--locked", "--package", "awari", "--bin", "awari", "--features", "parquet"]
    subprocess.run(command, cwd=_WORKSPACE, check=True)
    return _WORKSPACE / os.environ.get("CARGO_TARGET_DIR", "target") / "release/awari"
