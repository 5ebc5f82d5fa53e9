"""Looks at report pages in a real browser: python browser/pages.py PAGE… [--pictures DIR]

Prints one line per check and exits with 1 if any fails. Needs Chromium.
"""

import argparse
import os
import sys
import time

from driver import ENTER, RIGHT, Browser

CHARTS = """
return [...document.querySelectorAll('.charts')].every((charts) => {
  const front = charts.querySelector('figure.front svg');
  const box = front && front.getBoundingClientRect();
  const inside = [...front.querySelectorAll('polyline')].every((line) => {
    const own = line.getBoundingClientRect();
    return own.width > 100 && own.left >= box.left - 1 && own.right <= box.right + 1;
  });
  return box.width > 200 && box.height > 100 && inside && front.querySelectorAll('polyline').length > 0;
})"""
COLUMN = "return [...document.querySelector('table.sortable').tBodies[0].rows].map((row) => row.cells[1].dataset.v)"
SORTED = "return document.querySelectorAll('table.sortable thead th')[1].getAttribute('aria-sort')"
OVERFLOW = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
TABS = "return [...document.querySelectorAll('.tabs')][0].children.length"
LATEX = "return [...document.querySelectorAll('.copy textarea')].every((box) => box.value.includes('\\\\toprule'))"
HEADING = "table.sortable thead th:nth-child(2) button"


def numbers(values):
    return [float(value) for value in values if value is not None]


def check(browser, page):
    """Yields (what must hold, whether it does)."""
    browser.open(page)
    yield "one verdict", browser.run("return document.querySelectorAll('.verdict').length") == 1
    yield "curves are visible", browser.run(CHARTS)

    browser.type(HEADING, [ENTER])
    falling = numbers(browser.run(COLUMN))
    yield "Enter on a heading sorts", falling == sorted(falling, reverse=True) and len(falling) > 1
    yield "aria-sort says descending", browser.run(SORTED) == "descending"
    browser.type(HEADING, [ENTER])
    yield "Enter again turns it round", numbers(browser.run(COLUMN)) == falling[::-1]
    yield "aria-sort says ascending", browser.run(SORTED) == "ascending"
    yield "only one column is sorted", browser.run(
        "return document.querySelector('table.sortable').querySelectorAll('[aria-sort]').length") == 1

    browser.point("svg.curves", 0.6, 0.5)
    values = browser.run("return [...document.querySelectorAll('.charts')[0].querySelectorAll('.legend output')].map((o) => o.textContent)")
    yield "the legend tells the values at the pointer", all("%" in value for value in values)
    first = "return document.querySelector('.charts .readout').textContent"
    before = browser.run(first)
    browser.type("svg.curves", [RIGHT])
    yield "arrow keys move the line", before.startswith("round ") and browser.run(first) != before

    button = "document.querySelector('.legend button')"
    browser.run(f"{button}.click()")
    hidden = "return document.querySelector('svg.curves polyline').getBoundingClientRect().width"
    yield "the legend hides a strategy", browser.run(hidden) == 0
    browser.run(f"{button}.click()")

    for tab in range(browser.run(TABS)):
        browser.run("document.querySelector('.tabs').children[arguments[0]].click()", tab)
        shown = "return document.querySelectorAll('.charts')[0].querySelectorAll('figure.front').length"
        yield f"figure {tab + 1} comes to the front", browser.run(shown) == 1
    radii = "return [...document.querySelectorAll('svg.bubbles')[0].querySelectorAll('circle')].map((c) => c.getAttribute('r'))"
    plain = browser.run(radii)
    browser.run("document.querySelectorAll('.switch')[0].children[1].click()")
    yield "bubbles change with the strategy", len(plain) > 3 and browser.run(radii) != plain
    yield "tables can be had in LaTeX", browser.run(LATEX)
    browser.run("document.querySelector('.copy button').click()")
    time.sleep(0.3)
    yield "the LaTeX goes to the clipboard", browser.run("return document.querySelector('.copy span').textContent") == "Copied."

    browser.open(page, 390, 844)
    yield "nothing sticks out on a phone", browser.run(OVERFLOW)
    yield "curves are visible on a phone", browser.run(CHARTS)
    browser.open(page, dark=True)
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    yield "dark where the reader prefers it", sum(int(n) for n in ground[4:-1].split(",")[:3]) < 150
    browser.open(page, 800, 1100, printed=True)
    figures = "return [...document.querySelectorAll('figure')].every((f) => f.getBoundingClientRect().height > 50)"
    yield "all figures are printed", browser.run(figures)
    loaded = "return performance.getEntriesByType('resource').length"
    yield "nothing is loaded", browser.run(loaded) == 0
    complaints = browser.complaints()
    yield f"nothing stands on the console {complaints or ''}", not complaints


def pictures(browser, page, name, folder):
    os.makedirs(folder, exist_ok=True)
    browser.open(page, 1280, 1380)
    browser.run(
        "const svg = document.querySelector('svg.curves'), box = svg.getBoundingClientRect();"
        "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + 0.7 * box.width, clientY: box.top}))")
    browser.picture(os.path.join(folder, f"{name}.png"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="+", help="a page, or NAME=PAGE to name its picture")
    parser.add_argument("--pictures", help="folder for pictures")
    arguments = parser.parse_args()
    failed = 0
    with Browser() as browser:
        for given in arguments.pages:
            name, _, page = given.rpartition("=")
            page = os.path.abspath(page)
            for what, holds in check(browser, page):
                failed += not holds
                print(f"{'ok    ' if holds else 'FAILED'}  {name or page}: {what}")
            if arguments.pictures:
                pictures(browser, page, name or "page", arguments.pictures)
    sys.exit(1 if failed else 0)


main()
