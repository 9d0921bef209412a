#!/usr/bin/env python3
"""The perfetto report against the rules of the trace event format, on real samples. The viewer itself is not run.

usage: perfetto_test.py FRAGSIM
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
SAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "traces", "samples")
POLICIES = ["caching", "expandable", "async-pool"]


def report(traces, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        file, figures = os.path.join(folder, "trace.json"), os.path.join(folder, "result.json")
        command = [PROGRAM, "replay", *traces, "--report", "perfetto=" + file, "--report", "json=" + figures, *arguments]
        for policy in POLICIES:
            command += ["--policy", policy]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(file) as events, open(figures) as results:
            return json.load(events), json.load(results)["results"]


class Rules:
    """What holds for every report."""

    def test_the_document_is_an_object_of_events(self):
        self.assertEqual(set(self.document), {"displayTimeUnit", "traceEvents"})
        self.assertIn(self.document["displayTimeUnit"], ("ms", "ns"))

    def test_every_event_has_what_its_phase_needs(self):
        for event in self.events:
            self.assertIsInstance(event["name"], str)
            self.assertIsInstance(event["pid"], int)
            self.assertGreater(event["pid"], 0)
            self.assertGreaterEqual(event["ts"], 0)
            phase = event["ph"]
            self.assertIn(phase, "MCXi")
            if phase == "C":
                self.assertTrue(event["args"])
                for value in event["args"].values():
                    self.assertIsInstance(value, (int, float))
                    self.assertGreaterEqual(value, 0)
            else:
                self.assertIsInstance(event["tid"], int)
            if phase == "X":
                self.assertGreaterEqual(event["dur"], 0)
            if phase == "i":
                self.assertIn(event["s"], ("g", "p", "t"))
            if phase == "M":
                self.assertIn(event["name"], ("process_name", "process_sort_index", "thread_name", "thread_sort_index"))

    def test_events_come_by_time(self):
        times = [event["ts"] for event in self.events if event["ph"] != "M"]
        self.assertEqual(times, sorted(times))

    def test_every_process_and_thread_has_a_name_and_numbers_of_its_own(self):
        named = {(event["pid"], event["tid"]) for event in self.events if event["name"] == "thread_name"}
        self.assertEqual(len({tid for _, tid in named}), len(named))
        processes = {event["pid"] for event in self.events if event["name"] == "process_name"}
        self.assertEqual(processes, {event["pid"] for event in self.events})
        self.assertEqual(len(processes), len(self.results))
        for event in self.events:
            if event["ph"] in "Xi":
                self.assertIn((event["pid"], event["tid"]), named)

    def test_slices_of_a_thread_do_not_overlap(self):
        ends = collections.defaultdict(float)
        for event in self.events:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["ts"] + 1e-6, ends[event["tid"]])
                ends[event["tid"]] = event["ts"] + event["dur"]

    def test_counters_reach_the_peaks_and_end_where_the_result_says(self):
        for pid, result in enumerate(self.results, 1):
            for name in ("reserved", "allocated", "requested"):
                values = [event["args"]["bytes"] for event in self.events
                          if event["ph"] == "C" and event["pid"] == pid and event["name"] == name]
                if name != "reserved":  # what is given back after the last op is no op's doing
                    self.assertEqual(values[-1], result["metrics"][name + "_bytes.all.current"])
                self.assertLessEqual(max(values), result["metrics"][name + "_bytes.all.peak"])

    def test_every_failure_and_retry_is_an_instant(self):
        for pid, result in enumerate(self.results, 1):
            count = lambda name: sum(event["name"] == name for event in self.events if event["pid"] == pid)
            self.assertEqual(count("out of memory"), result["metrics"]["num_ooms"])
            self.assertEqual(count("recorded out of memory"), len(result["recorded_ooms"]))
            self.assertEqual(count("retry") > 0, result["metrics"]["num_alloc_retries"] > 0)


class WithTimes(Rules, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document, cls.results = report([os.path.join(SAMPLES, "oom.default.pickle.gz")], "--capacity", "6GiB")
        cls.events = cls.document["traceEvents"]

    def test_driver_calls_cost_what_the_result_says(self):
        for pid, result in enumerate(self.results, 1):
            us = sum(event["dur"] for event in self.events if event["ph"] == "X" and event["pid"] == pid)
            whole = result["metrics"]["driver_time_ns"] / 1000
            self.assertLessEqual(us, whole * 1.001)  # refused calls are no slices
            self.assertGreater(us, whole * 0.5)


class WithoutTimes(Rules, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "trace.txt")
            subprocess.run([PROGRAM, "convert", os.path.join(SAMPLES, "streams.default.pickle.gz"), "-o", text],
                           check=True, stderr=subprocess.DEVNULL)
            cls.document, cls.results = report([text])
        cls.events = cls.document["traceEvents"]


class SeveralTraces(Rules, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document, cls.results = report([os.path.join(SAMPLES, name + ".pickle.gz")
                                            for name in ("streams.default", "mempool.default")])
        cls.events = cls.document["traceEvents"]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
