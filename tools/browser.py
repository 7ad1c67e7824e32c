"""Headless Chromium, driven through the pipe of its DevTools protocol: opens pages, presses keys, takes pictures.

Debian: `apt-get install chromium`. The board's tests and its picture in docs/ are made with it.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe"),
)
ANSWER_SECONDS = 60.0

START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from descriptor 3 and answers on 4: this starts it so."""

KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    " ": (32, " "),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "End": (35, ""),
}
"""Key → its code, and the text that it types."""


def chromium() -> str | None:
    """The program; None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class BrowserError(Exception):
    """What the browser refused, or that it gave no answer."""


class Browser:
    """A browser with one page. problems: errors and warnings on its console; requests: addresses that it asked for."""

    def __init__(self, width: int = 1280, height: int = 900):
        program = chromium()
        if program is None:
            raise BrowserError("no chromium on PATH")
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._numbers, self._buffer = itertools.count(1), b""
        self._events: list[dict[str, Any]] = []
        self._profile = tempfile.mkdtemp(prefix="testbed-browser-")
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        command = [sys.executable, "-S", "-c", START, str(commands), str(answers), program]
        self._process = subprocess.Popen(
            [*command, *OPTIONS, f"--user-data-dir={self._profile}", f"--window-size={width},{height}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(commands, answers),
            start_new_session=True,
        )
        os.close(commands)
        os.close(answers)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for end in (self._write, self._read):
            os.close(end)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def resize(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """Let the reader prefer light or dark; and no motion."""
        preferred = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[{"name": n, "value": v} for n, v in preferred.items()])

    def open(self, page: Path, fragment: str = "") -> None:
        """Open a file, and wait until it is loaded."""
        self._events.clear()
        answer = self.call("Page.navigate", url=page.resolve().as_uri() + fragment)
        same = "loaderId" not in answer  # only the fragment is another one
        while not same and not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._next()

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression}: {found['exceptionDetails']['text']}")
        return found["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys of KEYS, or letters."""
        for key in keys:
            code, text = KEYS.get(key, (ord(key.upper()[0]), key))
            fields = {"key": key, "windowsVirtualKeyCode": code, "text": text}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **fields)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, height: int | None = None) -> bytes:
        """The page as PNG, from its top: `height` pixels, or its whole length."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(found["data"])

    def _next(self) -> dict[str, Any]:
        """The next message; events are kept, and what is wrong on the console."""
        end = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(end - time.monotonic(), 0))[0]:
                raise BrowserError("no answer from the browser")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise BrowserError("the browser ended")
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self._events.append(message)
            self._note(message["method"], message["params"])
        return message

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])
