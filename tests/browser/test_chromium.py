"""Which browser the tests use."""

import platform
from pathlib import Path

import pytest

from tests.browser import chromium
from tests.browser.chromium import VARIABLE, NoChromium, find_chromium


def test_npms_chromium_is_used_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert find_chromium() == chromium.UNPACKED / "chromium"
    monkeypatch.setenv(VARIABLE, "/usr/bin/chromium")
    assert find_chromium() == Path("/usr/bin/chromium")


def test_another_machine_is_told_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(NoChromium, match=VARIABLE):
        find_chromium()


def test_a_setup_without_npm_is_no_reason_to_skip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(chromium, "UNPACKED", tmp_path)
    with pytest.raises(FileNotFoundError, match="make setup"):
        find_chromium()
