"""Tests the site that tools/docs.sh makes: its links without a browser, and its pages in headless Chromium.

No page may have a dead link, load anything from elsewhere, or have the title of another one. Pictures must be
legible on a phone, and code have its colours. In the browser, every page must open without an error of a
script, stay within a screen of 400 columns, and be legible with light and with dark colours. The search must
find functions by their names. Exits with 77 if Chromium, its driver or selenium is missing.

usage: site.py [--screenshots FOLDER] SITE      SITE is the folder with index.html
"""
import argparse
import html.parser
import os
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.parse

PHONE, DESKTOP = 400, 1280  # widths of the window
HEIGHT = 900
LEAST_CONTRAST = 4.5        # of text to its background: WCAG 2.1, level AA
LEAST_TEXT = 9              # pixels, of text in pictures that are as wide as the phone
# What somebody types, and the function that is the first result.
SEARCHES = {"ditto_all_reduce": "ditto_all_reduce", "all_reduce": "ditto_all_reduce",
            "allreduce": "ditto_all_reduce", "all reduce": "ditto_all_reduce",
            "All-Reduce": "ditto_all_reduce", "reducescatter": "ditto_reduce_scatter",
            "allgather": "ditto_all_gather", "barrier": "ditto_barrier"}
# Pages, and languages that their blocks of code have.
LANGUAGES = {"README": ["c"], "docs/python": ["python", "sh"], "docs/cpp": ["cpp"],
             "docs/fortran": ["fortran", "cmake", "sh"], "docs/tutorial": ["c", "sh"], "docs/input": ["text"]}
SHOWN = ["index.html", "README.html#figures", "docs/tutorial.html", "docs/tutorial.html#read-an-error",
         "docs/cookbook.html", "docs/cookbook.html#count-in-a-hot-loop", "docs/versioning.html",
         "docs/performance.html#how-it-is-measured", "reference/index.html", "reference/functions.html",
         "reference/collective.html", "reference/collective.html#c.ditto_all_reduce",
         "reference/cpp.html#replica",
         "reference/fortran.html#replica-all-reduce", "reference/python.html#ditto.Replica.all_reduce"]
LOADING = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src",
           "audio": "src", "embed": "src", "object": "data"}


# -- links, without a browser --

class Page(html.parser.HTMLParser):
    """The links, the anchors and the loaded files of a page."""

    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.loaded, self.anchors = path, [], [], set()
        self.text = path.read_text()
        # What tabs and results of searches show, and the heading.
        self.titles = re.findall("<title>(.*?)<", self.text)[:1] + re.findall("<h1>(.*?)<", self.text)
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if found.get("id"):
            self.anchors.add(found["id"])
        if tag == "a" and found.get("name"):
            self.anchors.add(found["name"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADING and LOADING[tag] in found:
            self.loaded.append(found[LOADING[tag]])


def is_elsewhere(address):
    return bool(urllib.parse.urlsplit(address).netloc)


def check_links(site, pages):
    """Returns what is wrong, and the number of links to pages and anchors of the site."""
    problems, count = [], 0
    for page in pages.values():
        place = page.path.relative_to(site)
        for address in page.loaded:
            if is_elsewhere(address):
                problems.append(f"{place}: loads {address}")
        for address in page.links + page.loaded:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            count += 1
            target = page.path
            if parts.path:
                target = (page.path.parent / urllib.parse.unquote(parts.path)).resolve()
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                problems.append(f"{place}: {address} does not exist")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                problems.append(f"{place}: {address} has no such anchor")
    return problems, count


def check_texts(site, pages):
    """Titles, languages of code, and the size of text in pictures."""
    problems, places = [], {}
    for page in pages.values():
        for title in page.titles:
            other = places.setdefault(title, page.path)
            if other != page.path:
                problems.append(f"{page.path.relative_to(site)}: {other.name} is called {title} too")
    for name, languages in LANGUAGES.items():
        text = pages[site / f"{name}.html"].text
        problems += [f"{name}: no block of code is {language}" for language in languages
                     if f'class="highlight-{language} ' not in text]
    pictures = sorted((site / "_images").glob("*.svg"))
    for picture in pictures:
        text = picture.read_text()
        width = float(re.search(r'viewBox="0 0 ([\d.]+) ', text)[1])
        least = min(map(float, re.findall(r'font-size="([\d.]+)"', text))) * PHONE / max(width, PHONE)
        if least < LEAST_TEXT:
            problems.append(f"{picture.name}: text of {least:.1f} pixels at a width of {PHONE}")
    return problems + ([] if pictures else ["there are no pictures"])


# -- pages, in a browser --

def start_browser(profile):
    """Returns a driver of Chromium, or the reason why there is none."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return None, "selenium is missing (Debian: python3-selenium)"
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        return None, "chromium or chromedriver is missing (Debian: chromium, chromium-driver)"
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update",
                     f"--user-data-dir={profile}"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's sandbox refuses root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(driver), options=options), ""


def set_screen(driver, width, dark=False):
    """The size and the colours that the page is told. A window of the browser cannot be as narrow."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})


# How much wider than the screen the page is, and the first element that is the cause. Tables and blocks of
# code may scroll inside themselves. The theme lets the whole text scroll too, which does not count.
OVERFLOW = """
const width = document.documentElement.clientWidth;
const wide = [...document.querySelectorAll('article *')].filter(element => {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.right <= width + 1) return false;
    for (let outer = element.parentElement; outer && outer.tagName !== 'ARTICLE'; outer = outer.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(outer).overflowX)) return false;
    return true;
});
const first = wide.length ? wide[0].tagName + ' "' + wide[0].textContent.trim().slice(0, 40) + '"' : '';
const outer = ['html', 'body', '.content', 'article'].map(name => document.querySelector(name));
const widths = outer.map(element => element ? element.scrollWidth : 0);
return [Math.max(...widths) - width, first];
"""

# The colours of text that is shown, each with the background behind it.
COLOURS = """
const seen = {};
const parse = text => text.match(/[\\d.]+/g).map(Number);
for (const element of document.querySelectorAll('article *, .sidebar-tree a')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.getClientRects().length === 0) continue;
    const style = getComputedStyle(element);
    if (style.visibility === 'hidden' || style.opacity === '0' || element.closest('.headerlink')) continue;
    let outer = element, back = [255, 255, 255, 0];
    while (outer) {
        const found = parse(getComputedStyle(outer).backgroundColor);
        if (found.length === 3 || found[3] === 1) { back = found; break; }
        outer = outer.parentElement;
    }
    const fore = parse(style.color);
    seen[fore.slice(0, 3) + '/' + back.slice(0, 3)] = element.tagName + '.' + element.className + ' "' +
        element.textContent.trim().slice(0, 30) + '"';
}
const body = parse(getComputedStyle(document.body).backgroundColor);
return [body.slice(0, 3), Object.entries(seen)];
"""


def luminance(colour):
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_colours(driver, place, dark):
    background, pairs = driver.execute_script(COLOURS)
    problems = []
    if (luminance(background) < 0.1) != dark:
        problems.append(f"{place}: the background is {background} with {'dark' if dark else 'light'} colours")
    for pair, where in pairs:
        fore, back = ([float(v) for v in colour.split(",")] for colour in pair.split("/"))
        if contrast(fore, back) < LEAST_CONTRAST:
            problems.append(f"{place}: contrast {contrast(fore, back):.1f} of {where} "
                            f"({'dark' if dark else 'light'}: {pair})")
    return problems


def search(driver, site, words):
    """Returns the addresses of the results, the best one first."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
    driver.get((site / "index.html").as_uri())
    driver.find_element(By.CSS_SELECTOR, "input[name=q]").send_keys(words + "\n")
    WebDriverWait(driver, 30).until(lambda d: d.execute_script(
        "return document.querySelector('.search-summary')?.textContent"))
    return driver.execute_script("return [...document.querySelectorAll('ul.search a')].map(a => a.href)")


def check_search(driver, site):
    """Functions are found by their names, and decisions come after all other pages."""
    set_screen(driver, DESKTOP)
    problems, decisions = [], 0
    for words, function in SEARCHES.items():
        found = search(driver, site, words)
        if not found or not found[0].endswith(f"#c.{function}"):
            problems.append(f"the search for {words} does not begin with {function}: {found[:3]}")
        are_decisions = ["/docs/adr/" in address for address in found]
        decisions += sum(are_decisions)
        if are_decisions != sorted(are_decisions):
            problems.append(f"the search for {words} has decisions before other pages")
    return problems if decisions else [*problems, "no search has found a decision"]


def check_pages(driver, site, pages):
    problems = []
    for path in pages:
        place = path.relative_to(site)
        set_screen(driver, PHONE, dark=True)
        driver.get(path.as_uri())
        if not driver.title:
            problems.append(f"{place}: has no title")
        pixels, first = driver.execute_script(OVERFLOW)
        if pixels > 0 or first:
            problems.append(f"{place}: {pixels} pixels wider than {PHONE}: {first}")
        problems += check_colours(driver, place, dark=True)
        set_screen(driver, PHONE, dark=False)
        problems += check_colours(driver, place, dark=False)
        for entry in driver.get_log("browser"):
            if entry["level"] == "SEVERE":
                problems.append(f"{place}: {entry['message']}")
        loaded = driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        problems += [f"{place}: loads {address}" for address in loaded if is_elsewhere(address)]
    return problems


def make_screenshots(driver, site, folder):
    """Pictures of some pages, at both widths and with both kinds of colours."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        for width in (DESKTOP, PHONE):
            for dark in (False, True):
                set_screen(driver, width, dark)
                page, _, anchor = name.partition("#")
                driver.get((site / page).as_uri())
                driver.execute_script("""
                    const target = arguments[0] && document.getElementById(arguments[0]);
                    if (target) target.scrollIntoView({ behavior: 'instant' });""", anchor)
                place = "-".join(filter(None, (*pathlib.PurePath(page).with_suffix("").parts, anchor)))
                file = f"{place}-{width}-{'dark' if dark else 'light'}.png"
                driver.save_screenshot(str(folder / file))
    print(f"screenshots: {folder}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--screenshots", type=pathlib.Path, help="a folder for pictures of some pages")
    parser.add_argument("site", type=pathlib.Path, help="the folder with index.html")
    words = parser.parse_args()
    site = words.site.resolve()
    if not (site / "index.html").is_file():
        sys.exit(f"site: {site}/index.html does not exist: run tools/docs.sh")

    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    problems, num_links = check_links(site, pages)
    dead = len(problems)
    print(f"{len(pages)} pages, {num_links} links, {dead} dead")
    problems += check_texts(site, pages)

    reason = ""
    with tempfile.TemporaryDirectory() as profile:
        driver, reason = start_browser(profile)
        if driver is not None:
            try:
                problems += check_search(driver, site)
                problems += check_pages(driver, site, pages)
                if words.screenshots:
                    make_screenshots(driver, site, words.screenshots)
            finally:
                driver.quit()
            print(f"{len(pages)} pages in the browser, light and dark, {PHONE} columns wide")
    print("\n".join(problems))
    if problems:
        return 1
    if reason:
        print(f"skipped in the browser: {reason}")
        return 77
    return 0


sys.exit(main())
