"""Tests the page of bench/html_report.py: its messages for bad files, and then pages in headless Chromium.

Figures are computed here again from the CSV, by other code. The pages are those of a file of docs/figures, a
comparison of two of them, and a small file that is made here. With --all, they are those of all files.

usage: bench_report.py [--all] [--screenshots DIR]
The exit status is 77 (skipped) if Chromium, its driver or selenium is missing (Debian: chromium,
chromium-driver, python3-selenium). Bad files are tested before."""
import argparse
import base64
import csv
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "bench" / "html_report.py"
FIGURES = sorted((ROOT / "docs" / "figures").glob("*.csv"))
PEERS = ("libgomp", "libomp", "openmpi", "mpich", "gloo", "deepspeed", "vllm")
GROUP = ("bench", "replicas", "dtype", "op", "in_place", "devices", "skew_us", "turns", "load")
HEADING = "bench,algorithm,replicas,dtype,op,in_place,bytes,reps,ns_min,ns_median,ns_p95,gbps,bound_ns," \
          "noisy,peer_ratio,bound_form,devices,skew_us,cpu_share,cpu_ratio,turns,hand_over_ns,batches," \
          "disturbed,operation_share,load"
SHOTS = ["body", "#heat", "#bench-all-reduce", "#bench-all-reduce .charts", "#bench-all-reduce details"]
NARROW, WIDE = 400, 1300

checks = 0
failures = []


def check(good, what):
    """Counts a check. A failure is printed at the end."""
    global checks
    checks += 1
    if not good:
        failures.append(what)


# -- bad files --

def row_of(contender, ns, size=8, hand_over="50.0", noisy=0, batches=31, bench="all-reduce", least=0.9,
           most=1.1):
    return f"{bench},{contender},2,f32,SUM,1,{size},64,{ns * least:.0f},{ns},{ns * most:.0f},0.1,90," \
           f"{noisy},1.0,flags,1,,,,,{hand_over},{batches},0,,"


def call(folder, *words):
    return subprocess.run([sys.executable, str(PROGRAM), *map(str, words)], cwd=folder, capture_output=True,
                          text=True)


def test_bad_files(folder):
    good = f"{HEADING}\n{row_of('ditto', 100)}\n"
    texts = {
        "empty": "",
        "only comments": "# ditto 0.1.0, commit 1234, gcc 12, 2026-01-01\n",
        "only a heading": HEADING + "\n",
        "no heading": row_of("ditto", 100) + "\n",
        "missing column": HEADING.replace("ns_median,", "") + "\n",
        "unknown column": good.replace(",noisy,", ",noise,noisy,"),
        "unknown column at the end": good.replace("load\n", "load,colour\n").replace(",,\n", ",,,red\n"),
        "column twice": good.replace(",load", ",load,load"),
        "no number": good.replace(",100,", ",many,"),
        "infinite": good.replace(",100,", ",inf,"),
        "long row": good + row_of("libomp", 100) + ",1,2\n",
        "sample that is no number": good.replace("load\n", "load,samples\n").replace(",,\n", ",,,90;x;110\n"),
        "no name": good.replace("all-reduce,ditto", "all-reduce,"),
    }
    cases = []
    for name, text in texts.items():
        path = folder / (name.replace(" ", "-") + ".csv")
        path.write_text(text)
        cases.append((name, [path, "--html", "page.html"]))
    (folder / "bytes.csv").write_bytes(b"\xff\xfe\x00bench")
    (folder / "good.csv").write_text(good)
    (folder / "broken.json").write_text("{")
    (folder / "other.json").write_text('{"schema": 2, "machine": {"pus": [{"pu": 0}]}}')
    (folder / "schema.json").write_text('{"schema": 99}')
    (folder / "a-folder").mkdir()
    good_csv = folder / "good.csv"
    cases += [("bytes that are no text", ["bytes.csv", "--html", "page.html"]),
              ("no file", ["none.csv", "--html", "page.html"]),
              ("old file is bad", [good_csv, "--compare", "empty.csv", "--html", "page.html"]),
              ("no JSON", [good_csv, "--machine", "broken.json", "--html", "page.html"]),
              ("other JSON", [good_csv, "--machine", "other.json", "--html", "page.html"]),
              ("other schema", [good_csv, "--machine", "schema.json", "--html", "page.html"]),
              ("no such folder", [good_csv, "--html", "no-such-folder/page.html"]),
              ("a folder", [good_csv, "--html", "a-folder"])]
    page = folder / "page.html"
    page.write_text("the page before")
    before = sorted(folder.rglob("*"))
    for name, words in cases:
        ran = call(folder, *words)
        check(ran.returncode == 1, f"bad file ({name}): exit status {ran.returncode}")
        is_one_line = re.fullmatch(r"html_report: .+: asked (for|to) .+, but .+; .+\n", ran.stderr)
        check(is_one_line and not ran.stdout, f"bad file ({name}): the message is {ran.stderr!r}")
        check(page.read_text() == "the page before" and sorted(folder.rglob("*")) == before,
              f"bad file ({name}): a file was changed or left behind")
    ran = call(folder, good_csv, "--html", "page.html")
    check(ran.returncode == 0 and page.read_text().startswith("<!DOCTYPE html>"), f"good file: {ran.stderr}")
    check(call(folder, good_csv, "--check").returncode == 0, "good file: --check")
    return len(cases)


# -- figures, computed again --

class Csv:
    def __init__(self, path):
        self.rows, columns = [], None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("#"):
                continue
            cells = next(csv.reader([line]))
            if cells[0] == "bench":
                columns = cells
                continue
            row = dict.fromkeys(("hand_over_ns", "batches", "disturbed", "skew_us", "turns", "load"), "")
            row.update(zip(columns, cells), line=number)
            row["group"] = tuple(row.get(name) or ("1" if name == "devices" else "") for name in GROUP)
            self.rows.append(row)
        readings = sorted({float(row["hand_over_ns"]) for row in self.rows if row["hand_over_ns"]})
        starts = [value for i, value in enumerate(readings) if i == 0 or value > 1.6 * readings[i - 1]]
        for row in self.rows:
            if row["hand_over_ns"]:
                row["mode"] = str(sum(float(row["hand_over_ns"]) >= start for start in starts) - 1)
            elif not starts or row["bench"] in ("create", "rest", "wait") or \
                    (row["batches"], row["disturbed"]) == ("1", "0"):
                row["mode"] = "unknown"
            else:
                row["mode"] = None

    def counted(self):
        return [row for row in self.rows if row["mode"] and float(row["ns_median"] or 0) > 0]

    def ratios(self):
        """Returns (mode, group, bytes) -> ditto divided by its best peer."""
        times = {}
        for row in self.counted():
            key = row["mode"], "|".join(row["group"]), row["bytes"]
            times.setdefault(key, {}).setdefault(row["algorithm"], []).append(float(row["ns_median"]))
        found = {}
        for key, of in times.items():
            peers = [statistics.median(ns) for name, ns in of.items() if name.split("-")[0] in PEERS]
            if peers and "ditto" in of:
                found[key] = statistics.median(of["ditto"]) / min(peers)
        return found

    def num_charts(self):
        sizes = {}
        for row in self.counted():
            if row["bytes"] != "0":
                sizes.setdefault((row["mode"], row["group"]), set()).add(row["bytes"])
        return sum(len(of) > 1 for of in sizes.values())


def ratio_text(value):
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def is_near(a, b):
    return abs(a - b) <= 1e-8 * max(abs(a), abs(b))


# -- the browser --

class Browser:
    def __init__(self, webdriver, options, service):
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=service, options=options)
        self.run = self.driver.execute_script

    def show(self, width, is_dark):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]})

    def load(self, page):
        """Returns the errors of the console, and what was requested."""
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(page.as_uri())
        requests = [message["params"]["request"]["url"]
                    for entry in self.driver.get_log("performance")
                    for message in [json.loads(entry["message"])["message"]]
                    if message["method"] == "Network.requestWillBeSent"]
        return self.driver.get_log("browser"), requests

    def shoot(self, path, place):
        """Writes a picture of the place, if the page has it."""
        if not self.run("const e = document.querySelector(arguments[0]); if (e) e.scrollIntoView(); "
                        "return e !== null", place):
            return
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
        path.write_bytes(base64.b64decode(shot))


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


TABLE = """
const table = document.querySelectorAll("table.bench, table.compare")[arguments[0]];
return {heads: [...table.tHead.rows[0].cells].map(h => [h.dataset.name, "numeric" in h.dataset,
                                                        h.getAttribute("aria-sort")]),
        rows: [...table.tBodies[0].rows].map(r => [Number(r.dataset.line), r.className,
                                                   [...r.cells].map(c => [c.textContent, c.dataset.v])])};
"""
COLOURS = """
const of = e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor];
return [of(document.body), [...document.querySelectorAll(".key")].map(of)];
"""


def test_rows(browser, name, data):
    """Compares the tables with the CSV."""
    of_line = {row["line"]: row for row in data.rows}
    seen = 0
    for number in range(browser.run("return document.querySelectorAll('table.bench, table.compare').length")):
        table = browser.run(TABLE, number)
        columns = [head[0] for head in table["heads"]]
        if "of_bound" not in columns and "ns_median" not in columns:
            continue
        for line, _, cells in table["rows"]:
            row, seen = of_line[line], seen + 1
            shown = dict(zip(columns, cells))
            check(float(shown["ns_median"][1]) == float(row["ns_median"]), f"{name}:{line}: median")
            if float(row["bound_ns"] or 0) > 0:
                check(is_near(float(shown["of_bound"][1]), float(row["bound_ns"]) / float(row["ns_median"])),
                      f"{name}:{line}: bound / time")
            remarks = shown.get("remarks", [""])[0].split(", ")
            check(("noisy" in remarks) == (row["noisy"] == "1"), f"{name}:{line}: noisy")
            check(("all batches were disturbed" in remarks) == (row["mode"] is None),
                  f"{name}:{line}: disturbed")
    check(seen == len(data.rows), f"{name}: {seen} rows in tables, {len(data.rows)} in the CSV")
    return seen


def test_sorting(browser, name):
    """Sorts each table, the first one by each of its columns."""
    clicks = 0
    tables = browser.driver.find_elements("css selector", "table.bench, table.compare")
    for number, element in enumerate(tables):
        heads = browser.run(TABLE, number)["heads"]
        buttons = element.find_elements("css selector", "th button")
        wanted = [k for k, head in enumerate(heads) if number == 0 or head[0] in ("ns_median", "ratio")]
        for column in wanted:
            before = browser.run(TABLE, number)["rows"]
            for direction in ("ascending", "descending"):
                if direction == "ascending":
                    buttons[column].click()
                else:
                    buttons[column].send_keys("\n")  # the keyboard does the same
                clicks += 1
                table = browser.run(TABLE, number)
                place = f"{name}: table {number}, {heads[column][0]}, {direction}"
                check([head[2] for head in table["heads"]] ==
                      [direction if k == column else None for k in range(len(heads))], f"{place}: aria-sort")
                values = [row[2][column] for row in table["rows"]]
                values = [value[1] if heads[column][1] else value[0] for value in values]
                filled = [value for value in values if value != ""]
                check(not any(values[len(filled):]), f"{place}: empty cells last")
                filled = [float(value) for value in filled] if heads[column][1] else filled
                check(filled == sorted(filled, reverse=direction == "descending"), f"{place}: order")
                check(sorted(map(str, table["rows"])) == sorted(map(str, before)), f"{place}: rows changed")
    return clicks


def test_heat(browser, name, data):
    cells = browser.run("""return [...document.querySelectorAll("td[data-ratio]")].map(c =>
        [c.closest("table").dataset.mode, c.parentNode.dataset.group, c.dataset.bytes, c.dataset.ratio,
         c.textContent]);""")
    wanted = data.ratios()
    check(len(cells) == len(wanted), f"{name}: {len(cells)} numbers in heat maps, {len(wanted)} expected")
    for mode, group, size, ratio, text in cells:
        place, expected = f"{name}: heat map {mode}, {group}, {size}", wanted.get((mode, group, size))
        check(expected is not None and is_near(float(ratio), expected), f"{place}: {ratio}, not {expected}")
        check(expected is not None and text.removesuffix(" ~") == ratio_text(expected), f"{place}: {text}")
    return len(cells)


def test_looks(browser, name):
    """Widths, colours, titles of marks."""
    for width in (NARROW, WIDE):
        for is_dark in (False, True):
            browser.show(width, is_dark)
            browser.run("for (const e of document.querySelectorAll('details')) e.open = true")
            widths = browser.run("return [document.documentElement.scrollWidth, document.body.scrollWidth]")
            check(max(widths) <= width, f"{name}: {widths} pixels in a window of {width}")
            (fore, back), keys = browser.run(COLOURS)
            place = f"{name}, {'dark' if is_dark else 'light'}"
            check((luminance(back) < 0.05) == is_dark, f"{place}: the background is {back}")
            check(contrast(fore, back) >= 7, f"{place}: text {fore} on {back}")
            for key in keys:
                check(contrast(*key) >= 4.5, f"{place}: heat map {key}")
    without = browser.run("return [...document.querySelectorAll('.chart .dot')].filter(d => "
                          "!d.querySelector('title')).length")
    entries = browser.run("return [...document.querySelectorAll('.chart g .line')].filter(l => "
                          "!l.parentNode.querySelector('title')).length")
    check(without == entries, f"{name}: {without - entries} marks have no title")


def test_page(browser, name, page, data):
    browser.show(WIDE, False)
    errors, requests = browser.load(page)
    check(not errors, f"{name}: the console says {errors}")
    outside = [url for url in requests if url != page.as_uri() and not url.startswith("data:")]
    check(requests and not outside, f"{name}: requests {outside}")
    html = page.read_text()
    names = re.findall(r"(?:src|href)=[\"']?(?:https?:|//|file:)|@import|url\(", html)
    check(not names, f"{name}: external names {names}")
    rows = test_rows(browser, name, data)
    num_charts = browser.run("return document.querySelectorAll('figure.chart').length")
    check(num_charts == data.num_charts(), f"{name}: {num_charts} charts, {data.num_charts()} expected")
    cells = test_heat(browser, name, data)
    clicks = test_sorting(browser, name)
    test_looks(browser, name)
    check(not browser.driver.get_log("browser"), f"{name}: the console has errors after the clicks")
    print(f"{name}: {rows} rows, {num_charts} charts, {cells} numbers in heat maps, {clicks} sortings")


def compared(browser):
    """Returns the lines of the comparison as dictionaries of numbers and remarks."""
    table = browser.run(TABLE, 0)
    columns = [head[0] for head in table["heads"]]
    return [{column: cell[0] if cell[1] is None else float(cell[1]) if cell[1] else None
             for column, cell in zip(columns, cells)} for _, _, cells in table["rows"]]


def test_comparison(browser, name, page):
    browser.load(page)
    pairs = compared(browser)
    for pair in pairs:
        has = pair["old"] is not None, pair["new"] is not None
        remarks = pair["remarks"]
        if pair["ratio"] is not None:
            check(all(has) and is_near(pair["ratio"], pair["new"] / pair["old"]), f"{name}: ratio of {pair}")
            word = "noisier" if "noisier" in remarks or "not known" in remarks else \
                "faster" if pair["ratio"] < 1 else "slower"
            check(word in remarks or "spread not known" in remarks, f"{name}: remark of {pair}")
        elif "disturbed" not in remarks:
            said = "missing in old" not in remarks, "missing in new" not in remarks
            check(said == has and not all(has), f"{name}: missing of {pair}")
    return pairs


def small_files(folder):
    """Files with two modes, an unpleasant name and each kind of comparison."""
    head = "# ditto 0.1.0, commit abc, gcc 12, 2026-01-02\n# A <b>CPU</b>, 4 PUs, NUMA nodes: 2, SMT: on\n"
    old, new = folder / "old.csv", folder / "new.csv"
    lines = [row_of("ditto", 100), row_of("libomp", 200), row_of("<script>alert(1)</script>", 400),
             row_of("ditto", 1000, hand_over="200.0"), row_of("libomp", 1500, hand_over="200.0", noisy=1),
             row_of("ditto", 300, 64), row_of("libomp", 100, 64), row_of("mpich", 900, 64, batches=3),
             row_of("ditto", 777, 4096, hand_over="")]
    new.write_text("\n".join([head + HEADING, *lines]) + "\n")
    lines = [row_of("ditto", 200), row_of("libomp", 195), row_of("ditto", 500, hand_over="200.0"),
             row_of("gloo", 5000)]
    old.write_text("\n".join([head + HEADING, *lines]) + "\n")
    return old, new


def test_small(browser, folder):
    old, new = small_files(folder)
    page = folder / "small.html"
    ran = call(folder, new, "--compare", old, "--html", page)
    check(ran.returncode == 0, f"small file: {ran.stderr}")
    data = Csv(new)
    test_page(browser, "small file", page, data)
    ratios = data.ratios()
    check(len(ratios) == 3 and len({mode for mode, _, _ in ratios}) == 2, "small file: modes are apart")
    found = {(pair["contender"], pair["bytes"], pair["hand_over_new"] or pair["hand_over_old"]):
             (pair["ratio"], pair["remarks"]) for pair in test_comparison(browser, "small file", page)}
    wanted = {("ditto", 8, 50): (0.5, "faster"), ("ditto", 8, 200): (2, "slower"),
              ("libomp", 8, 50): (200 / 195, "noisier than the difference"),
              ("libomp", 8, 200): (None, "missing in old"), ("gloo", 8, 50): (None, "missing in new")}
    for key, (ratio, remark) in wanted.items():
        shown = found.get(key, (None, ""))
        check(remark in shown[1] and (ratio is None) == (shown[0] is None) and
              (ratio is None or is_near(ratio, shown[0])), f"small file: comparison of {key} shows {shown}")
    check(found[("ditto", 4096, None)][1].startswith("disturbed"), "small file: a disturbed row")
    cells = browser.run("return [...document.querySelectorAll('td[data-ratio]')].map(c => c.textContent)")
    check(sorted(cells) == ["0.50", "0.67 ~", "3.00"], f"small file: heat maps have {cells}")


def test_samples(folder):
    """A page of a row whose three samples are in the CSV has a dot for each."""
    path, page = folder / "samples.csv", folder / "samples.html"
    path.write_text(f"{HEADING},samples\n{row_of('ditto', 100)},90;100;140\n")
    ran = call(folder, path, "--html", page)
    check(ran.returncode == 0, f"samples: {ran.stderr}")
    check(page.read_text().count("<circle") == 3, "samples: a dot for each")


def open_browser():
    """Returns a browser, or says what is missing and ends the test."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        print(f"skipped: {sys.executable} has no selenium (Debian: python3-selenium, of /usr/bin/python3)")
        sys.exit(1 if failures else 77)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        print(f"skipped: {'chromedriver' if chromium else 'chromium'} is missing (Debian: "
              f"{'chromium-driver' if chromium else 'chromium'})")
        sys.exit(1 if failures else 77)
    options = Options()
    options.binary_location = chromium
    return Browser(webdriver, options, Service(driver))


def shoot_all(browser, folder, name, page, places):
    for width in (NARROW, WIDE):
        for is_dark in (False, True):
            browser.show(width, is_dark)
            browser.load(page)
            browser.run("for (const e of document.querySelectorAll('details')) e.open = true")
            for place in places:
                word = re.sub(r"[^a-z]+", "-", place).strip("-")
                browser.shoot(folder / f"{name}-{width}-{'dark' if is_dark else 'light'}-{word}.png", place)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--screenshots", metavar="DIR", type=pathlib.Path, help="the folder of pictures")
    parser.add_argument("--all", action="store_true", help="all files of docs/figures, instead of two")
    words = parser.parse_args()
    figures = FIGURES if words.all else FIGURES[:2]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "bad").mkdir()
        print(f"bad files: {test_bad_files(folder / 'bad')} cases")
        test_samples(folder)
        print("\n".join(failures), end="\n" if failures else "")
        browser = open_browser()
        try:
            pages = []
            for path in figures if words.all else figures[-1:]:
                page = folder / (path.stem + ".html")
                ran = call(folder, path, "--html", page)
                check(ran.returncode == 0, f"{path.stem}: {ran.stderr}")
                test_page(browser, path.stem, page, Csv(path))
                pages.append((path.stem, page, SHOTS))
            comparisons = list(zip(figures, figures[1:] + figures[:1]))
            for old, new in comparisons if words.all else comparisons[:1]:
                name = f"{new.stem} compared with {old.stem}"
                page = folder / f"compare-{new.stem}.html"
                ran = call(folder, new, "--compare", old, "--html", page)
                check(ran.returncode == 0, f"{name}: {ran.stderr}")
                test_page(browser, name, page, Csv(new))
                pairs = test_comparison(browser, name, page)
                sides = [sum(bool(pair[side]) for pair in pairs) for side in ("old", "new")]
                ratios = [pair["ratio"] for pair in pairs if pair["ratio"] is not None]
                print(f"  compared: {len(ratios)} of {len(pairs)} lines; "
                      f"old has {sides[0]}, new has {sides[1]}")
                pages.append((f"compare-{new.stem}", page, ["#comparison", "table.compare"]))
            test_small(browser, folder)
            if words.screenshots:
                words.screenshots.mkdir(parents=True, exist_ok=True)
                for name, page, places in pages:
                    shoot_all(browser, words.screenshots, name, page, places)
                print(f"pictures: {len(list(words.screenshots.glob('*.png')))} in {words.screenshots}")
        finally:
            browser.driver.quit()
    print("\n".join(failures[:50]), end="\n" if failures else "")
    print(f"{checks} checks, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
