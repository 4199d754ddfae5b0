"""The console in a headless Chromium."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pandod_process import REPOSITORY
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

SCREENSHOTS = REPOSITORY / "build" / "screenshots"
# An expression for the number of nodes that are drawn and not about to disappear.
NODES = "document.querySelectorAll('#icicle g.here.node').length"
# An expression for "every drawn element has reached its final position".
AT_REST = (
    "!document.querySelector('#icicle g:not(.here)')"
    " && [...document.querySelectorAll('#icicle g.here')].every(group =>"
    " group.getAttribute('opacity') === '1' && Math.abs("
    "(group.transform.baseVal.consolidate()?.matrix.e ?? 0) - group.__data__.x)"
    " < 0.1)"
)
WAIT_SECONDS = 60
POLL_SECONDS = 0.05
ARGUMENTS = [
    "--headless=new",
    # Chromium runs as root in containers.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-proxy-server",
]


class ConsolePage:
    """One browser, which shows one page at a time."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver
        self._media: dict[str, str] = {}

    def open(self, address: str, fragment: str = "") -> None:
        """Shows the console from the start, light and as large as on a desktop.

        Waits until the console is live, and drops what the browser logged before.
        """
        self.leave()
        self.theme("light")
        self.viewport(1440, 1000)
        self._driver.get_log("browser")
        self._driver.get_log("performance")
        self._driver.get(f"http://{address}/console/{fragment}")
        self.until("document.querySelector('#live[data-state=live]')")

    def leave(self) -> None:
        """Leaves the console, so that no page asks pandod anything."""
        self._driver.get("about:blank")

    def run(self, expression: str) -> Any:
        return self._driver.execute_script(f"return {expression}")

    def until(self, expression: str) -> Any:
        """Waits until the expression is true, and returns its value."""
        wait = WebDriverWait(self._driver, WAIT_SECONDS, POLL_SECONDS)
        return wait.until(lambda _: self.run(expression), f"never: {expression}")

    def click(self, selector: str) -> None:
        """Clicks the first match of the selector, even one that is drawn and moves."""
        self.until(
            "(found => found && (found.dispatchEvent("
            "new MouseEvent('click', {bubbles: true})), true))"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def type(self, selector: str, text: str) -> None:
        self._driver.find_element("css selector", selector).send_keys(text)

    def press(self, key: str) -> None:
        """Sends the key to the element that has the keyboard's focus."""
        self._driver.switch_to.active_element.send_keys(key)

    def text(self, selector: str = "body") -> str:
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def blocks(self, kind: str = "node") -> list[str]:
        """Returns the names of drawn elements that are not about to disappear."""
        return self.run(
            f"[...document.querySelectorAll('#icicle g.here.{kind}')]"
            ".map(group => group.dataset.name)"
        )

    def theme(self, scheme: str) -> None:
        self._media["prefers-color-scheme"] = scheme
        self._emulate_media()

    def viewport(self, width: int, height: int) -> None:
        self._emulate(
            "setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )

    def screenshot(self, name: str) -> Path:
        """Saves a picture of the page at rest, with its motion switched off."""
        self._media["prefers-reduced-motion"] = "reduce"
        self._emulate_media()
        self.until(AT_REST)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self._driver.save_screenshot(path)
        del self._media["prefers-reduced-motion"]
        self._emulate_media()
        return path

    def errors(self) -> list[str]:
        """Returns the browser's warnings and errors since the last call."""
        return [
            entry["message"]
            for entry in self._driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]

    def requested_hosts(self) -> set[str]:
        """Returns every host that the page sent a request to since the last call."""
        entries = self._driver.get_log("performance")
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return {
            urlsplit(message["params"]["request"]["url"]).netloc
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        } - {""}

    def _emulate_media(self) -> None:
        features = [{"name": k, "value": v} for k, v in self._media.items()]
        self._emulate("setEmulatedMedia", features=features)

    def _emulate(self, what: str, **parameters: Any) -> None:
        self._driver.execute_cdp_cmd(f"Emulation.{what}", parameters)


@contextlib.contextmanager
def browser() -> Iterator[ConsolePage]:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
    try:
        yield ConsolePage(driver)
    finally:
        driver.quit()
