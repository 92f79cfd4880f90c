#!/usr/bin/env python3
"""What half and double of every constant of the solver change.

    python3 bench/constants.py REFERENCE RECORDINGS SCRATCH [NAME ...]

REFERENCE holds the reference problems, RECORDINGS a folder with train.csv for each recording. The tree is copied to SCRATCH, where
every named number of tha-train/src/{solve,ensemble} and the first rows of fit/valid.rs becomes one that is read from the environment; it
is built once (CARGO_TARGET_DIR is heeded) and run with one number changed at a time (all, or those whose FILE:NAME contains a NAME), on
the benchmarks that read it at all. One thread, two runs at a time. Results: SCRATCH/results.json, and a table on standard output. For
development only: no test and no part of the product calls it."""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

if len(sys.argv) < 4:
    sys.exit(__doc__)
TREE = pathlib.Path(__file__).resolve().parent.parent
REFERENCE, RECORDINGS, SCRATCH = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
WANTED = sys.argv[4:]
COPY, SOURCE = SCRATCH / "tree", SCRATCH / "tree/tha-train/src"
# Limits that refuse a problem, estimates of memory and of time: they decide nothing that is fitted.
LEFT_OUT = {"COPIES", "PER_SAMPLE", "PER_OUTPUT", "SQUARES", "SQUARE_PER", "ENTRIES", "NUMBERS", "CHEAP_HEADS", "CHEAP_PARAMETERS",
            "CHEAP_WORK", "TUPLE_LIMIT", "DIVERGED"}
LEFT_OUT_FILES = {"solve/mvmals.rs"}
ENDS = r"(?P<head>^(?:pub(?:\([a-z]+\))? )?)const (?P<name>[A-Z_]+): (?P<kind>usize|f64|Effort) =\s*(?P<value>[^;]+);"
FITS = {
    "air": ["air_quality", "--memory", "3", "--degree", "2"],
    "tanks": ["cascaded_tanks", "--basis", "differences:64", "--maps", "8", "--degree", "2"],
    "tanks, lags": ["cascaded_tanks", "--memory", "10", "--degree", "2"],
    "robot": ["robot_kr300", "--memory", "1", "--degree", "2"],
    "heads": ["air_quality", "--memory", "2", "--degree", "2", "--heads", "6", "--subset-size", "3"],
    "additive": ["air_quality", "--memory", "2", "--degree", "2", "--heads", "6", "--subset-size", "3", "--combine", "additive"],
}
READER = """
pub(crate) fn changed<T: std::str::FromStr>(key: &str, value: T) -> T {
    if std::env::var_os("THA_TRACE").is_some() { eprintln!("THA_READ {key}"); }
    std::env::var(key).ok().and_then(|text| text.parse().ok()).unwrap_or(value)
}
"""


def key(file, name):
    return "THA_" + re.sub(r"\W", "_", file.removesuffix(".rs")) + "_" + name


def reader(head, name, kind, value, file):
    """A function in the place of a constant, and the numbers in it: (key, value)."""
    once = "static V: std::sync::OnceLock<{0}> = std::sync::OnceLock::new(); *V.get_or_init(|| {1})"
    if kind == "Effort":
        numbers = re.findall(r"(\w+): ([\d.e_-]+)", value)
        fields = ", ".join(f'{f}: crate::changed("{key(file, name)}_{f}", {v})' for f, v in numbers)
        found = [(f"{key(file, name)}_{f}", v) for f, v in numbers]
        body = once.format(kind, f"Effort {{ {fields} }}")
    else:
        found = [(key(file, name), value)]
        body = once.format(kind, f'crate::changed("{key(file, name)}", {value})')
    return f"#[allow(non_snake_case)] {head}fn {name}() -> {kind} {{ {body} }}", found


def calls(text, name):
    """Uses of a constant as calls: not in comments and imports."""
    lines, importing = [], False
    for line in text.split("\n"):
        bare = line.lstrip()
        importing = importing or bare.startswith(("use ", "pub use ", "pub(crate) use "))
        if not importing and not bare.startswith("//"):
            line = re.sub(rf"(?<![\w{{\"])(?<!fn ){name}\b(?!\(|:|!)", lambda found: found[0] + "()", line)
        if importing and bare.rstrip().endswith(";"):
            importing = False
        lines.append(line)
    return "\n".join(lines)


def rewrite():
    """Rewrites the copy; gives {key: (FILE:NAME, value)}."""
    files = {p.relative_to(SOURCE).as_posix(): p.read_text() for p in sorted(SOURCE.rglob("*.rs"))}
    found, public = {}, []
    for file, text in files.items():
        if not file.startswith(("solve/", "ensemble/", "fit/valid")) or file in LEFT_OUT_FILES:
            continue
        for match in list(re.finditer(ENDS, text, re.M)):
            name = match["name"]
            if name in LEFT_OUT or name in re.sub(r"//.*", "", match["value"]) or "{" + name in text:
                continue
            new, numbers = reader(match["head"], name, match["kind"], match["value"].strip(), file)
            text = calls(text.replace(match[0], "@@"), name).replace("@@", new)
            for number, value in numbers:
                try:
                    value = eval(value.replace("_", "").replace("BLOCK", "128"))
                except (NameError, SyntaxError):
                    continue
                field = number.removeprefix(key(file, name)).replace("_", ".")
                found[number] = (f"{file.removesuffix('.rs').removeprefix('solve/')}:{name}{field}", value)
            if match["head"] or file.endswith("mod.rs"):
                public.append((file, name))
        files[file] = text
    for file, name in public:
        path = pathlib.Path(file)
        modules = f"{path.parent.name if path.stem == 'mod' else path.stem}|{path.parts[0]}"
        for other, text in files.items():
            if other == file:
                continue
            imported = other.startswith(path.parts[0]) and re.search(rf"use [^;]*\b{name}\b[^;]*;", text)
            if imported and not re.search(rf"(const|fn) {name}\b", text):
                text = calls(text, name)
            files[other] = calls(text, rf"\b({modules})::{name}")
    files["lib.rs"] += READER
    for file, text in files.items():
        (SOURCE / file).write_text(text)
    return found


def build():
    """The executables by name."""
    made = {}
    for extra in (["bench", "--no-run", "-p", "tha-train", "--bench", "reference", "--bench", "ablation"], ["build", "--release", "-p", "tha-cli"]):
        out = subprocess.run(["cargo", *extra, "--message-format=json"], cwd=COPY, stdout=subprocess.PIPE, check=True, text=True).stdout
        for line in out.splitlines():
            at = json.loads(line).get("executable")
            if at:
                name = json.loads(line)["target"]["name"]
                made[name] = SCRATCH / name
                shutil.copy2(at, made[name])
    return made


def run(command, changed, name):
    """Output, trace and CPU seconds; None where it fails or takes a minute."""
    environment = {**os.environ, **changed, "RAYON_NUM_THREADS": "1"}
    with open(SCRATCH / f"{name}.out", "w+") as out, open(SCRATCH / f"{name}.err", "w+") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        limit = time.time() + 120
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.time() > limit:
                child.kill()
                os.wait4(child.pid, 0)
                return None
            time.sleep(0.01)
        child.returncode = 0
        out.seek(0), err.seek(0)
        return None if status else (out.read(), err.read(), usage.ru_utime + usage.ru_stime)


def cells(text, mark):
    return [[c.strip() for c in line.strip("| ").split("|")] for line in text.splitlines() if line.startswith("|") and mark in line]


def benchmarks(made):
    """Name: (command, what its output says)."""
    def reference(text):
        return {c[0]: float(c[4]) for c in cells(text, "**ladder")}

    def planted(text):
        return {"found": float(cells(text, "nothing")[0][4].split()[0])}

    def many(text):
        return {"residual": float(cells(text, "nothing")[0][6])}

    def fitted(text):
        return {"nrmse": sum(n := json.loads(text)["val"]["nrmse"]) / len(n)}

    empty = SCRATCH / "empty"
    empty.mkdir(exist_ok=True)
    all_of_them = {
        "reference": ([made["reference"], REFERENCE], reference),
        "noise-free": ([made["ablation"], empty, "1", "0", "none"], planted),
        "30 inputs": ([made["ablation"], empty, "0", "30", "none"], many),
    }
    for name, (folder, *options) in FITS.items():
        command = [made["tha-train"], "fit", RECORDINGS / folder / "train.csv", "--json", "--out", "/dev/null", *options]
        all_of_them[name] = (command, fitted)
    return all_of_them


def neighbours(name, value):
    """The values to try: half and double, of what there is to halve."""
    if isinstance(value, int):
        if re.search("LONGEST|SHORT", name):
            return [value - 1, value + 1]
        return sorted({max(value // 2, 1), value * 2} - {value})
    if 0.5 < value < 1:
        return [1 - 2 * (1 - value), 1 - (1 - value) / 2]
    if 1 < value < 1.5:
        return [1 + (value - 1) / 2, 1 + 2 * (value - 1)]
    if value < 1e-3 and ".tolerance" not in name:
        return [value / 10, value * 10]
    return [value / 2, value * 2]


def main():
    SCRATCH.mkdir(parents=True, exist_ok=True)
    if COPY.exists():
        shutil.rmtree(COPY)
    shutil.copytree(TREE, COPY, ignore=shutil.ignore_patterns("target", ".git", "__pycache__"))
    found = rewrite()
    made = build()
    tests = benchmarks(made)

    def measure(job):
        number, value, test = job
        command, says = tests[test]
        changed = {"THA_TRACE": "1"} if number is None else {number: str(value)}
        result = run(command, changed, f"{number}_{value}_{test}".replace(" ", "_").replace(",", ""))
        for end in (".out", ".err"):
            (SCRATCH / (f"{number}_{value}_{test}".replace(" ", "_").replace(",", "") + end)).unlink(missing_ok=True)
        if result is None:
            return job, None, None, ""
        return job, says(result[0]), result[2], result[1]

    with ThreadPoolExecutor(2) as pool:
        base = {job[2]: (what, cpu, set(re.findall(r"THA_READ (\w+)", trace)))
                for job, what, cpu, trace in pool.map(measure, [(None, None, test) for test in tests])}
        again = {job[2]: cpu for job, _, cpu, _ in pool.map(measure, [("NONE", 0, test) for test in tests])}
        jobs = [(number, value, test) for number, (name, old) in found.items() if not WANTED or any(w in name for w in WANTED)
                for value in neighbours(name, old) for test in tests if number in base[test][2]]
        print(f"{len(found)} numbers, {len(jobs)} runs", file=sys.stderr)
        results = {}
        for count, (job, what, cpu, _) in enumerate(pool.map(measure, jobs)):
            results.setdefault(job[0], {}).setdefault(str(job[1]), {})[job[2]] = (what, cpu)
            if count % 50 == 0:
                print(count, time.strftime("%H:%M:%S"), file=sys.stderr, flush=True)
                (SCRATCH / "results.json").write_text(json.dumps(dump(found, base, again, results)))
    final = dump(found, base, again, results)
    (SCRATCH / "results.json").write_text(json.dumps(final))
    table(final)


def dump(found, base, again, results):
    plain = {test: (what, min(cpu, again[test] or cpu), sorted(read)) for test, (what, cpu, read) in base.items()}
    return {"base": plain, "found": found, "results": results}


def difference(test, what, cpu, base):
    """What changed in words, empty where nothing did: errors by more than 0.1 %, CPU time by more than a fifth."""
    if what is None:
        return f"{test} fails"
    parts = []
    before, seconds = base[test][0], base[test][1]
    if test == "noise-free":
        if what["found"] != before["found"]:
            parts.append(f"{what['found']:.0f} of 4 found")
    else:
        ratios = {k: what[k] / before[k] for k in what}
        noisy = {k: r for k, r in ratios.items() if "clean" not in k or what[k] > 1e-9}
        worst = max(noisy, key=lambda k: abs(math.log(noisy[k])))
        if abs(noisy[worst] - 1) > 1e-3:
            parts.append(f"{worst + ' ' if len(what) > 1 else ''}error {100 * (noisy[worst] - 1):+.1f} %")
    if abs(math.log(cpu / seconds)) > math.log(1.2) and abs(cpu - seconds) > 0.1:
        parts.append(f"CPU {cpu / seconds:.2f}")
    return f"{test}: {', '.join(parts)}" if parts else ""


def table(final):
    base = final["base"]
    print("base:", {test: (round(sum(what.values()), 6), round(cpu, 2)) for test, (what, cpu, _) in base.items()})
    print("| constant | value | changed to | what changes |\n|---|---|---|---|")
    still, unread = [], []
    for number, (name, value) in final["found"].items():
        values = final["results"].get(number)
        if not values:
            unread.append(name)
            continue
        lines = {v: "; ".join(filter(None, (difference(t, w, c, base) for t, (w, c) in tests.items()))) for v, tests in values.items()}
        if not any(lines.values()):
            still.append(f"{name} {value:g} ({', '.join(next(iter(values.values())))})")
        else:
            for v, text in lines.items():
                print(f"| {name} | {value:g} | {float(v):g} | {text or 'nothing'} |")
    print("\nnothing changes:", "; ".join(still))
    print("\nnever read:", "; ".join(unread))


if __name__ == "__main__":
    if WANTED == ["table"]:
        table(json.loads((SCRATCH / "results.json").read_text()))
    else:
        main()
