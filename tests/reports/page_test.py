#!/usr/bin/env python3
"""The HTML report in a real browser: drawn soon, zoomed, hovered, read by keyboard, safe with hostile names.

usage: page_test.py FRAGSIM [--screenshots FOLDER]
Status 77 where no Chromium is installed.
"""

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

import chromium

PROGRAM = sys.argv[1]
SCREENSHOTS = sys.argv[3] if len(sys.argv) > 3 else None
OPS = 100_000
INTERACTIVE_MS = 3000


def write_trace(path, ops):
    """Two allocations in three while few are live, then as many frees: sizes as training has them, from a few bytes on."""
    dice = random.Random(6)
    live, lines, made = [], ["# fragsim trace 1"], 0
    while len(lines) <= ops - len(live):
        if not live or dice.random() < (0.67 if len(live) < 1500 else 0.5):
            size = int(2 ** dice.uniform(9, 25 if dice.random() < 0.1 else 21))
            lines.append(f"a {made} {size}")
            live.append(made)
            made += 1
        else:
            lines.append(f"f {live.pop(dice.randrange(len(live)))}")
    lines += [f"f {buffer}" for buffer in live]
    with open(path, "w") as file:
        file.write("\n".join(lines[:ops + 1]) + "\n")


def fragsim(*arguments):
    subprocess.run([PROGRAM, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trace, cls.page = (os.path.join(cls.folder.name, name) for name in ("big.txt", "big.html"))
        write_trace(cls.trace, OPS)
        fragsim("compare", cls.trace, "--capacity", "1.2GiB", "--policy", "caching", "--policy",
                "caching:max_split_size_mb=20", "--policy", "expandable", "--report", "html=" + cls.page)
        cls.browser = chromium.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def open(self, page=None, **how):
        self.took = self.browser.open(page or self.page, **how)

    def value(self, expression):
        return self.browser.value(expression)

    def box(self, selector, number=0):
        """Of the plot that dygraphs draws in: left, top, width, height in the window, scrolled into sight."""
        return self.value(f"""(() => {{ const plot = document.querySelectorAll('{selector}')[{number}];
            plot.scrollIntoView({{block: 'center'}});
            const box = plot.querySelector('canvas').getBoundingClientRect();
            return [box.left + 70, box.top, box.width - 80, 280]; }})()""")

    def labels(self, axis, number):
        return self.value(f"""Array.from(document.querySelectorAll('.plot')[{number}]
            .querySelectorAll('.dygraph-axis-label-{axis}'), (label) => label.textContent)""")

    def x_labels(self, number):
        return self.labels("x", number)

    def readout(self, number):
        return self.value(f"document.querySelectorAll('.readout')[{number}].textContent")

    def hover(self, plot, across, up):
        left, top, width, height = self.box(".plot", plot)
        self.browser.mouse("mouseMoved", left + width * across, top + height * (1 - up))

    def zoom(self, plot, begin, end):
        left, top, width, height = self.box(".plot", plot)
        self.browser.drag(left + width * begin, top + height / 2, left + width * end, top + height / 2)

    def test_a_long_trace_is_interactive_soon(self):
        times = []
        for _ in range(3):
            self.open()
            times.append(self.took)
        print(f"{OPS:,} ops, 3 policies, {os.path.getsize(self.page):,} bytes: interactive after {times} ms")
        self.assertLess(min(times), INTERACTIVE_MS)
        self.assertEqual(self.value("document.querySelectorAll('.plot').length"), 3)

    def test_every_chart_is_drawn(self):
        self.open()
        colours = self.value("""Array.from(document.querySelectorAll('.plot'), (plot) => Math.max(...Array.from(
            plot.querySelectorAll('canvas'), (canvas) => new Set(new Uint32Array(canvas.getContext('2d')
            .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size)))""")
        self.assertEqual(len(colours), 3)
        for number in colours:
            self.assertGreater(number, 4)

    def test_nothing_is_loaded_and_nothing_goes_wrong(self):
        self.open()
        self.zoom(0, 0.2, 0.4)
        self.hover(1, 0.5, 0.5)
        loaded = [url for url in self.browser.requests if not url.startswith("data:")]
        self.assertEqual(loaded, ["file://" + os.path.realpath(self.page)])
        self.assertEqual(self.browser.errors, [])

    def test_hovering_says_the_exact_bytes_of_that_op(self):
        timeline = os.path.join(self.folder.name, "timeline.csv")
        fragsim("replay", self.trace, "--capacity", "1.2GiB", "--policy", "caching", "--timeline", timeline, "-f")
        with open(timeline) as file:
            by_op = {int(row["op"]): row for row in csv.DictReader(file)}
        self.open()
        for across in (0.25, 0.5, 0.75):
            self.hover(0, across, 0.5)
            head, row = self.value("""Array.from(document.querySelectorAll('.readout')[0].querySelectorAll('tr'))
                .slice(0, 2).map((row) => Array.from(row.children, (cell) => cell.textContent))""")
            op = int(head[0].removeprefix("op ").replace(",", ""))
            self.assertAlmostEqual(op / OPS, across, delta=0.02)
            for name, cell in zip(head[1:], row[1:]):
                self.assertTrue(cell.endswith(f"{int(by_op[op][name + '_bytes']):,} B"), (op, name, cell))

    def test_dragging_zooms_both_charts_of_ops_and_a_double_click_shows_all(self):
        self.open()
        whole = self.x_labels(0)
        self.zoom(0, 0.45, 0.55)
        self.zoom(0, 0.45, 0.55)
        self.assertNotEqual(self.x_labels(0), whole)
        self.assertEqual(self.x_labels(0), self.x_labels(1))
        self.hover(0, 0.5, 0.5)  # of a thousand ops all are there
        ops = set()
        for step in range(12):
            self.hover(0, 0.5 + step / 1000, 0.5)
            ops.add(int(self.readout(0).split("reserved")[0].removeprefix("op ").replace(",", "")))
        self.assertGreater(len(ops), 6)
        self.assertLess(max(ops) - min(ops), 30)
        left, top, width, height = self.box(".plot", 0)
        for clicks in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.browser.mouse(kind, left + width / 2, top + height / 2, "left", clickCount=clicks)
        self.assertEqual(self.x_labels(0), whole)

    def test_keys_zoom_move_and_read(self):
        self.open()
        whole = self.x_labels(0)
        self.value("document.querySelector('.plot').focus()")
        self.browser.key("+")
        near = self.x_labels(0)
        self.assertNotEqual(near, whole)
        self.browser.key("ArrowRight")
        self.assertNotEqual(self.x_labels(0), near)
        self.browser.key("ArrowRight", modifiers=8)
        first = self.readout(0)
        self.assertTrue(first.startswith("op "))
        self.browser.key("ArrowRight", modifiers=8)
        self.assertNotEqual(self.readout(0), first)
        self.browser.key("0")
        self.assertEqual(self.x_labels(0), whole)

    def test_the_memory_map_says_what_a_block_is(self):
        self.open()
        said = set()
        for up in range(5, 95, 3):
            self.hover(2, 0.75, up / 100)
            said.add(self.readout(2))
        self.assertTrue(any("allocated at op" in text and "B requested" in text for text in said), said)
        self.assertTrue(any(": free, " in text for text in said), said)

    def test_the_memory_map_zooms_both_ways(self):
        self.open()
        whole = self.labels("y", 2)
        left, top, width, height = self.box(".plot", 2)
        self.browser.drag(left + width / 2, top + height * 0.3, left + width / 2, top + height * 0.6)
        near = self.labels("y", 2)
        self.assertNotEqual(near, whole)
        before = self.x_labels(2)
        self.zoom(2, 0.6, 0.7)
        self.assertNotEqual(self.x_labels(2), before)
        self.assertEqual(self.labels("y", 2), near)

    def test_another_policy_and_moment_can_be_chosen(self):
        self.open()
        before = self.readout(1)
        self.value("""(() => { const select = document.querySelector('.of-policy select');
            select.selectedIndex = 2; select.dispatchEvent(new Event('change')); })()""")
        self.assertNotEqual(self.readout(1), before)
        self.assertEqual(self.value("Array.from(document.querySelectorAll('.of-policy select'), (s) => s.selectedIndex)"),
                         [2, 2])
        self.zoom(0, 0.4, 0.6)  # the new chart follows, the one that is gone does not
        self.assertEqual(self.x_labels(1), self.x_labels(0))
        self.value("document.querySelectorAll('.choice input')[1].click()")
        self.assertEqual(self.browser.errors, [])

    def test_light_dark_narrow_and_wide(self):
        backgrounds = set()
        for name, width, dark in (("light", 1280, False), ("dark", 1280, True), ("narrow", 400, False), ("wide", 1900, True)):
            self.open(width=width, dark=dark)
            self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)
            backgrounds.add(self.value("getComputedStyle(document.body).backgroundColor"))
            if SCREENSHOTS:
                self.browser.screenshot(os.path.join(SCREENSHOTS, name + ".png"))
        self.assertEqual(len(backgrounds), 2)

    def test_hostile_names_are_text(self):
        name = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=2'>\"&amp;"
        frames = [{"filename": name + ".py", "name": name, "line": 3}]
        entries = []
        for at, action in enumerate(["segment_alloc", "alloc", "alloc", "free_requested", "free_completed"]):
            address = 0x7F0000000000 + (1 << 20 if at == 2 else 0)
            entries.append({"action": action, "addr": address, "size": 20 << 20 if at == 0 else 1 << 20, "stream": 0,
                            "time_us": at, "frames": frames})
        folder = os.path.join(os.fsencode(self.folder.name), b"\xff<")
        os.mkdir(folder)
        trace = os.path.join(folder, b"script><script>window.hacked=3<", b"script>.json")
        os.mkdir(os.path.dirname(trace))
        with open(trace, "w") as file:
            json.dump({"segments": [], "device_traces": [entries]}, file)
        page = os.path.join(self.folder.name, "hostile.html")
        fragsim("replay", trace, "--report", "html=" + page)
        self.open(page)
        self.assertEqual(self.browser.errors, [])
        self.assertIsNone(self.value("window.hacked"))
        self.assertIn("/script><script>window.hacked=3</script>.json", self.value("document.querySelector('h1').textContent"))
        self.assertIn(name, self.value("document.querySelector('main').textContent"))


if __name__ == "__main__":
    if not chromium.find():
        print("skipped: no chromium is installed")
        sys.exit(chromium.SKIPPED)
    unittest.main(argv=sys.argv[:1])
