#!/usr/bin/env python3
"""Puts together what scripts/gpu_check.sh measured.

usage: gpu_report.py report PARTS OUT     report.md and results.json from the parts' outputs
       gpu_report.py pool WAS IS          compares two recordings of tests/gpu/async_pool/record.cpp
       gpu_report.py model PROGRAM TIMES  the program's bundled prices against measured driver times: rows of trace,
                                          policy and nanoseconds in several runs (tests/gpu/results/h200/driver_times.json)
"""
import csv
import datetime
import glob
import json
import os
import subprocess
import sys

# The driver's own pool: where its memory goes depends on what the GPU has passed, so it is judged on an idle card alone.
POOLS = ("async-pool", "torch-async")


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def milliseconds(ns):
    return f"{ns / 1e6:.2f} ms" if ns >= 1e6 else f"{ns / 1e3:.1f} us"


def label(result):
    params = result["policy"]["params"]
    name = result["policy"]["name"]
    if name == "split-capped":
        return f"{name}:max_split_size_mb={params['max_split_size_mb']}"
    if name == "stitching" and params["variant"] != "paper":
        return f"{name}:variant={params['variant']}"
    return name


def pairs(document):
    """Host and device results of the same policy stand one behind the other."""
    results = document["results"]
    return [(results[i], results[i + 1]) for i in range(0, len(results) - 1, 2)]


def percent(part, whole):
    return "" if not whole else f"{100 * (part / whole - 1):+.1f} %"


def exact(row):
    return (row["placements_equal"] == row["allocs"] and row["reserved_equal"] == row["events"] and
            row["ooms_host"] == row["ooms_device"])


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else 0


def agreement_rows(name, document):
    rows = []
    for host, device in pairs(document):
        latency = device["run"].get("latency")
        measured = latency["driver_ns"] / max(1, len(latency["repetition_ns"])) if latency else 0
        agree = device["agreement"]
        rows.append({
            "trace": name, "policy": label(host), "allocs": agree["allocs"],
            "placements_equal": agree["placements_equal"], "events": agree["events"],
            "reserved_equal": agree["reserved_equal"], "ooms_host": agree["ooms_host"],
            "ooms_device": agree["ooms_device"], "first_difference": agree.get("first_difference"),
            "spoilt_words": device["device"]["spoilt_words"],
            "reserved_peak_host": host["metrics"]["reserved_bytes.all.peak"],
            "reserved_peak_device": device["metrics"]["reserved_bytes.all.peak"],
            "driver_modelled_ns": host["metrics"]["driver_time_ns"], "driver_measured_ns": measured,
        })
    return rows


def latency_rows(document):
    rows = []
    for _, device in pairs(document):
        latency = device["run"].get("latency")
        if latency:
            rows.append((label(device), latency))
    return rows


def report(parts, out):
    card = read(f"{parts}/card").strip()
    status = [line.split() for line in read(f"{parts}/parts").splitlines()]
    results = {"card": card, "date": datetime.date.today().isoformat(), "parts": status,
               "left_out": read(f"{parts}/left_out").splitlines(), "agreement": [], "limits": [], "latency": {},
               "peers": {}}
    text = [f"# What the card showed\n\n{card}, {results['date']}; written by scripts/gpu_check.sh.\n"]

    for path in sorted(glob.glob(f"{parts}/agree.*.json")):
        name = os.path.basename(path)[len("agree."):-len(".json")]
        document = json.loads(read(path))
        results["agreement"] += agreement_rows(name, document)
        for policy, latency in latency_rows(document):
            results["latency"][f"{name} {policy}"] = latency
    placed = [row for row in results["agreement"] if row["policy"] not in POOLS]
    text.append(f"\n{len(results['agreement'])} replays with every buffer written when it was allocated and verified before "
                f"it was freed: {sum(row['spoilt_words'] > 0 for row in results['agreement'])} with spoilt memory. "
                f"Placements, reserved bytes after every event and out of memory as on the host model: "
                f"{sum(map(exact, placed))} of {len(placed)} (all policies but the driver's own pool, which is below).\n\n"
                "## Modelled driver time against measured\n\nWhole replays, by policy over all traces: median of the "
                "error's size, and its range.\n\n| policy | median | range |\n| --- | --- | --- |\n")
    for policy in dict.fromkeys(row["policy"] for row in placed):
        errors = [100 * (row["driver_modelled_ns"] / row["driver_measured_ns"] - 1) for row in placed
                  if row["policy"] == policy and row["driver_measured_ns"]]
        if errors:
            text.append(f"| {policy} | {median([abs(e) for e in errors]):.0f} % | {min(errors):+.0f} to "
                        f"{max(errors):+.0f} % |\n")
    text.append("\n")
    text.append("## Host model against the card\n\nEvery buffer was written when it was allocated and verified before it "
                "was freed.\n\n| trace | policy | placements equal | reserved equal after | out of memory, host / card | "
                "words spoilt | driver time modelled | measured | error |\n"
                "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for row in results["agreement"]:
        text.append(f"| {row['trace']} | {row['policy']} | {row['placements_equal']} of {row['allocs']} | "
                    f"{row['reserved_equal']} of {row['events']} | {row['ooms_host']} / {row['ooms_device']} | "
                    f"{row['spoilt_words']} | {milliseconds(row['driver_modelled_ns'])} | "
                    f"{milliseconds(row['driver_measured_ns'])} | "
                    f"{percent(row['driver_modelled_ns'], row['driver_measured_ns'])} |\n")

    text.append("\n## An idle card, a limit, a full card\n\n`pool`: nothing touches the memory and the recorded pauses are kept; "
                "`limit`: refused by the policy or the capacity; `full`: the rest "
                "of the card was really taken, so the driver refused.\n\n| run | policy | placements equal | reserved "
                "equal after | out of memory, host / card | words spoilt |\n| --- | --- | --- | --- | --- | --- |\n")
    for kind in ("pool", "limit", "full"):
        for path in sorted(glob.glob(f"{parts}/{kind}.*.json")):
            for row in agreement_rows(os.path.basename(path)[:-len(".json")], json.loads(read(path))):
                results["limits"].append(row)
                text.append(f"| {row['trace']} | {row['policy']} | {row['placements_equal']} of {row['allocs']} | "
                            f"{row['reserved_equal']} of {row['events']} | {row['ooms_host']} / {row['ooms_device']} | "
                            f"{row['spoilt_words']} |\n")

    text.append("\n## Latency\n\nPer op, nanoseconds: the policy's own time; growth and retry with the driver's.\n\n"
                "| trace, policy | hit p50 | p99 | p99.9 | free p50 | growth p50, with driver | retry p50, with driver | "
                "total own | A/A noise |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for name, latency in results["latency"].items():
        if not name.startswith(("gpt2_varlen.default ", "vit_multires.f70 ")):
            continue
        ops = latency["ops"]
        hit, free = ops["alloc_hit"]["policy"], ops["free_kept"]["policy"]
        text.append(f"| {name} | {hit['p50_ns']} | {hit['p99_ns']} | {hit['p99_9_ns']} | {free['p50_ns']} | "
                    f"{ops['alloc_growth']['with_driver']['p50_ns']} | {ops['alloc_retry']['with_driver']['p50_ns']} | "
                    f"{milliseconds(sum(latency['repetition_policy_ns']) / len(latency['repetition_policy_ns']))} | "
                    f"{100 * latency['a_a_noise']:+.1f} % |\n")

    for path in sorted(glob.glob(f"{parts}/peer.*.out")):
        name = os.path.basename(path)[len("peer."):-len(".out")]
        if name == "build" or not read(path).strip():
            continue
        try:
            results["peers"][name] = {"torch": json.loads(read(path)), "ours": json.loads(read(f"{parts}/ours.{name}.out"))}
        except json.JSONDecodeError:
            results["peers"][name] = {"torch_output": read(path)[:2000]}

    if results["peers"]:
        text.append("\n## Beside PyTorch's allocator\n\nThe same ops through PyTorch's own allocator from C++ "
                    "(tests/gpu/peers), in the same run; nanoseconds, the clock included.\n\n| trace | hit p50, PyTorch | "
                    "caching | free p50, PyTorch | caching | whole replay, PyTorch | caching | statistics equal |\n"
                    "| --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for name, peer in results["peers"].items():
        if "torch" not in peer:
            text.append(f"| {name} | did not run | | | | | | |\n")
            continue
        theirs, ours = peer["torch"]["results"][0], peer["ours"]["results"][0]
        times, latency, metrics = theirs["times"], ours["run"]["latency"], ours["metrics"]
        equal = sum(metrics.get(key) == value for key, value in theirs["statistics"].items())
        text.append(f"| {name} | {times['alloc_hit']['p50_ns']} | {latency['ops']['alloc_hit']['policy']['p50_ns']} | "
                    f"{times['free']['p50_ns']} | {latency['ops']['free_kept']['policy']['p50_ns']} | "
                    f"{milliseconds(times['whole']['p50_ns'])} | {milliseconds(median(latency['repetition_ns']))} | "
                    f"{equal} of {len(theirs['statistics'])} |\n")

    text.append("\n## Other parts\n\n")
    for part in status:
        name = part[0]
        said = (read(f"{parts}/{name}.out") + read(f"{parts}/{name}.err")).strip()
        if name.startswith(("agree", "pool", "limit", "full", "peer", "ours")):
            said = read(f"{parts}/{name}.err").strip()
        text.append(f"* `{name}`: status {part[1]}, {part[2]} s\n")
        if said:
            text.append("".join(f"      {line}\n" for line in said.splitlines()[:12]))
    for name in results["left_out"]:
        text.append(f"* {name}\n")
    with open(f"{out}/report.md", "w", encoding="utf-8") as file:
        file.write("".join(text).replace(parts + "/", ""))
    with open(f"{out}/results.json", "w", encoding="utf-8") as file:
        file.write(json.dumps(results, separators=(",", ":")).replace(parts + "/", ""))


def pool(was, is_now):
    """The same programs: where the addresses, the failures and `reserved` are the same, from each program's first block."""
    def programs(path):
        all_rows, rows, base = [], None, None
        for row in csv.DictReader(line for line in open(path, encoding="utf-8")):
            if row["op"] == "P":
                rows, base = [], None
                all_rows.append(rows)
            if rows is None:
                continue
            if row["op"] == "A" and base is None:
                base = int(row["pointer"])
            offset = int(row["pointer"]) - base if row["op"] == "A" else None
            rows.append((row["op"], offset, row["reserved"] if row["op"] not in "PC" else None))
        return all_rows
    first, second = programs(was), programs(is_now)
    same = sum(a == b for a, b in zip(first, second))
    print(f"{same} of {len(first)} programs as recorded")


def model(program, times):
    """Whole replays on the host model against the mean of the measured runs."""
    measured, errors = {}, {}
    for trace, policy, *runs in json.loads(read(times)):
        measured.setdefault(trace, []).append((policy, sum(runs) / len(runs)))
    for trace, policies in measured.items():
        command = [program, "compare", f"traces/samples/{trace}.pickle.gz", "--json"]
        for policy, _ in policies:
            command += ["--policy", policy]
        results = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["results"]
        for (policy, mean), result in zip(policies, results):
            errors.setdefault(policy, []).append(100 * (result["metrics"]["driver_time_ns"] / mean - 1))
    for policy, values in errors.items():
        print(f"{policy:<40} median {median([abs(e) for e in values]):4.0f} %   {min(values):+.0f} to {max(values):+.0f} %")


if __name__ == "__main__":
    {"report": report, "pool": pool, "model": model}[sys.argv[1]](*sys.argv[2:4])
