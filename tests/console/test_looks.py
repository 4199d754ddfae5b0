"""The console with dark colours, and on a phone."""

import re

from console_page import NODES


def test_it_is_dark_where_the_system_is(page, load):
    page.open(load.http)
    page.until(f"{NODES} > 20")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.run(background)
    page.theme("dark")
    page.until(f"{background} !== '{light}'")
    dark = [int(part) for part in re.findall(r"\d+", page.run(background))]
    assert max(dark) < 40
    page.click("#icicle g.node")
    page.until("document.querySelector('#details dl')")
    page.screenshot("dark")


def test_it_fits_on_a_phone(page, load):
    page.open(load.http)
    page.viewport(390, 844)
    page.until(f"{NODES} > 20")
    page.until("document.querySelector('#icicle svg').clientWidth < 390")
    page.until("document.documentElement.scrollWidth <= 390")
    outside = page.run(
        "[...document.querySelectorAll('main *')].filter(part =>"
        " !part.closest('svg, .scroll')"
        " && part.getBoundingClientRect().right > 391).length"
    )
    assert outside == 0
    page.viewport(390, 2600)
    page.screenshot("phone")
