"""What tests of reports share."""

import pytest

from skselect.report import render


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave out the pictures of each model, which take most of the time of a page."""
    monkeypatch.setattr(render, "_draw_pictures", lambda *_: {})
