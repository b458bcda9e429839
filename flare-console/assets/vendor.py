#!/usr/bin/env python3
"""Makes tabler.css.gz of the unpacked npm package @tabler/core, whose folder it is given:

    npm pack @tabler/core@1.6.1 && tar xzf tabler-core-1.6.1.tgz && flare-console/assets/vendor.py package

It is dist/css/tabler.min.css as it is, and after it the rules that Tabler has for dark pages once more for
those who ask for dark by their system and chose nothing here: so that this needs no script.
"""

import gzip
import os
import re
import sys

DARK = "[data-bs-theme=dark]"
BY_SYSTEM = ":root:not([data-bs-theme])"


def rules(css):
    """The rules of the outermost level as (selectors, declarations)."""
    at, depth, begin, opening = 0, 0, 0, 0
    while at < len(css):
        letter = css[at]
        if letter in "\"'":
            at = css.index(letter, at + 1)
        elif letter == "{":
            opening = at if depth == 0 else opening
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth == 0:
                yield css[begin:opening].strip(), css[opening + 1 : at]
                begin = at + 1
        elif letter == ";" and depth == 0:
            begin = at + 1
        at += 1


def split(selectors):
    return re.split(r",(?![^()\[]*[)\]])", selectors)


def dark(css):
    for selectors, declarations in rules(css):
        if selectors.startswith("@"):
            continue
        ours = []
        for selector in split(selectors):
            if selector.startswith((DARK, ":root" + DARK)):
                ours.append(selector.removeprefix(":root").replace(DARK, BY_SYSTEM, 1))
        if ours and selectors.split(",")[0] != ":root":
            yield f"{','.join(ours)}{{{declarations}}}"


def main():
    with open(os.path.join(sys.argv[1], "dist/css/tabler.min.css"), encoding="utf-8") as file:
        css = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", file.read()).strip()
    body = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    by_system = "@media (prefers-color-scheme:dark){" + "".join(dark(body)) + "}"
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "tabler.css.gz"), "wb") as file:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=file, mtime=0) as packed:
            packed.write(f"{css}\n{by_system}\n".encode())
    print(f"{len(css)} bytes, {len(by_system)} of them again for dark by system")


if __name__ == "__main__":
    main()
