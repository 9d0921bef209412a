"""Headless Chromium over its DevTools protocol, with nothing but the standard library."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

SKIPPED = 77  # ctest's status for a test that could not run


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class WebSocket:
    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        head = self.read_until(b"\r\n\r\n")
        assert b" 101 " in head.split(b"\r\n")[0], head

    def read_until(self, mark):
        while mark not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(mark, 1)
        return head

    def fill(self):
        more = self.socket.recv(1 << 20)
        if not more:
            raise ConnectionError("the browser closed the connection")
        self.buffer += more

    def read(self, size):
        while len(self.buffer) < size:
            self.fill()
        part, self.buffer = self.buffer[:size], self.buffer[size:]
        return part

    def send(self, text):
        data = text.encode()
        length = len(data)
        head = b"\x81" + (bytes([0x80 | length]) if length < 126
                          else b"\xfe" + struct.pack(">H", length) if length < 65536
                          else b"\xff" + struct.pack(">Q", length))
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        """The next text message, put together from its frames."""
        message = b""
        while True:
            first, second = self.read(2)
            length = second & 0x7F
            if length == 126:
                length, = struct.unpack(">H", self.read(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.read(8))
            data = self.read(length)
            if first & 0x0F in (0, 1):
                message += data
                if first & 0x80:
                    return message.decode()


class Browser:
    """One tab. `errors`: what the page's console and its exceptions said; `requests`: the addresses it asked for."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-port=0",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self.wait_for_port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self.socket = WebSocket("127.0.0.1", port, "/" + page["webSocketDebuggerUrl"].split("/", 3)[3])
        self.last_id, self.errors, self.requests = 0, [], []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def wait_for_port(self):
        file = os.path.join(self.profile.name, "DevToolsActivePort")
        for _ in range(300):
            if os.path.exists(file):
                with open(file) as lines:
                    if port := lines.readline().strip():
                        return int(port)
            time.sleep(0.1)
        raise TimeoutError("chromium did not open its port")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.socket.close()
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def call(self, method, **parameters):
        self.last_id += 1
        self.socket.send(json.dumps({"id": self.last_id, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.last_id:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.hear(message)

    def hear(self, message):
        parameters = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"])[:2000])
        elif message["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(parameters["args"]))
        elif message["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif message["method"] == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def value(self, expression):
        """Of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, json.dumps(result["exceptionDetails"])[:2000]
        return result["result"].get("value")

    def wait_until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.value(expression):
                return value
            time.sleep(0.05)
        raise TimeoutError(expression)

    def open(self, path, width=1280, height=900, dark=False):
        """Opens a file and waits until the page says that it is ready; how many milliseconds that took."""
        self.errors, self.requests = [], []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="file://" + os.path.realpath(path))
        return int(self.wait_until("document.documentElement?.dataset.ready"))

    def mouse(self, kind, x, y, button="none", **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button,
                  buttons=1 if button == "left" and kind != "mouseReleased" else 0, **more)

    def drag(self, from_x, from_y, to_x, to_y):
        self.mouse("mouseMoved", from_x, from_y)
        self.mouse("mousePressed", from_x, from_y, "left", clickCount=1)
        for step in range(1, 6):
            self.mouse("mouseMoved", from_x + (to_x - from_x) * step / 5, from_y + (to_y - from_y) * step / 5, "left")
        self.mouse("mouseReleased", to_x, to_y, "left", clickCount=1)

    def key(self, name, **more):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, **more)

    def screenshot(self, file):
        """Of the whole page."""
        content = self.call("Page.getLayoutMetrics")["cssContentSize"]
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": content["width"], "height": content["height"], "scale": 1})
        with open(file, "wb") as out:
            out.write(base64.b64decode(image["data"]))
