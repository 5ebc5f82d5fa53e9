"""Chromium, controlled through its DevTools protocol over a pipe; needs only Python's standard library and bash."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome"]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
]
ENTER = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
RIGHT = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}
SECONDS = 120


class Browser:
    """One window; use it in a with statement."""

    def __enter__(self):
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            raise RuntimeError(f"none of {', '.join(NAMES)} is installed")
        self.profile = tempfile.mkdtemp(prefix="fedtvd-browser-")
        (commands, self.to), (self.back, answers) = os.pipe(), os.pipe()
        # Chromium reads from descriptor 3 and writes to 4, which the pipes themselves must not have.
        inside = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
        os.close(commands)
        os.close(answers)
        shell = 'read=$1 write=$2; shift 2; exec "$@" 3<&"$read" 4>&"$write"'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *map(str, inside), program, *FLAGS, f"--user-data-dir={self.profile}"],
            pass_fds=inside, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in inside:
            os.close(end)
        self.number, self.read, self.events, self.session = 0, b"", [], None
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.command("Browser.close")
            self.process.wait(10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        finally:
            shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        """The next message of the browser."""
        while b"\0" not in self.read:
            ready, _, _ = select.select([self.back], [], [], SECONDS)
            more = os.read(self.back, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("the browser does not answer")
            self.read += more
        text, self.read = self.read.split(b"\0", 1)
        return json.loads(text)

    def command(self, name, **params):
        """A command of the DevTools protocol, and its result."""
        self.number += 1
        request = {"id": self.number, "method": name, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if "id" not in message:
                self.events.append(message)
            elif message["id"] == self.number:
                if "error" in message:
                    raise RuntimeError(f"{name}: {message['error']['message']}")
                return message["result"]

    def open(self, path, width=1100, height=900, dark=False, printed=False):
        phone = width < 600
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media="print" if printed else "screen", features=[scheme])
        before = len(self.events)
        self.command("Page.navigate", url=f"file://{path}")
        while not any(event["method"] == "Page.loadEventFired" for event in self.events[before:]):
            self.events.append(self.message())
        time.sleep(0.3)

    def run(self, script, *arguments):
        """The value that the body of a function returns."""
        call = f"(function () {{{script}}}).apply(null, {json.dumps(arguments)})"
        answer = self.command("Runtime.evaluate", expression=call, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def type(self, selector, keys):
        """Focuses an element and types, as someone without a mouse does."""
        self.run("document.querySelector(arguments[0]).focus()", selector)
        for key in keys:
            self.command("Input.dispatchKeyEvent", type="keyDown" if "text" in key else "rawKeyDown", **key)
            self.command("Input.dispatchKeyEvent", type="keyUp", **key)

    def point(self, selector, across, down):
        """Moves the pointer to a place inside an element, given as fractions of its size."""
        box = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", selector)
        x, y = round(box[0] + across * box[2]), round(box[1] + down * box[3])
        self.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self):
        """What the pages have written to the console, and their uncaught exceptions."""
        kinds = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]

    def picture(self, path, whole=False):
        params = {"format": "png"}
        if whole:
            size = self.command("Page.getLayoutMetrics")["cssContentSize"]
            params |= {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.command("Page.captureScreenshot", **params)["data"]))
