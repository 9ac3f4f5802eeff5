"""Tests of the page in headless Chromium. `conftest.py` has the fixtures, `chromium.py` the browser."""
