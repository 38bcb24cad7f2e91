"""A real headless browser, for tests of the pages; they are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium: Playwright's own, else the machine's."""
    with playwright.sync_playwright() as started:
        own = started.chromium.executable_path
        path = own if Path(own).exists() else next(filter(None, map(shutil.which, NAMES)), None)
        if path is None:
            pytest.skip("no Chromium is installed; playwright install chromium brings one")
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        launched = started.chromium.launch(executable_path=path, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A small screen without a network."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True)
    yield context
    context.close()


def opened(context: Any, address: str, wrong: list[str]) -> Any:
    """The page; errors on its console, and what it would fetch, go to `wrong`."""
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on(
        "request", lambda asked: wrong.append(asked.url) if asked.url != address.partition("#")[0] else None
    )
    page.goto(address)
    return page


CONTRAST = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255 <= .04045 ? c / 3294.6 : ((c / 255 + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = channels(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("main *")]
    .filter((e) => e.offsetParent && !e.closest(":disabled")
      && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
    .map((e) => {
      const [a, b] = [light(channels(getComputedStyle(e).color)), light(ground(e))];
      return [e.id || e.textContent.trim().slice(0, 30), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
    });
}"""
