"""Every relative link in the documents leads to a file that exists and, behind a #, to a heading it has."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(document):
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(document):
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{document.relative_to(ROOT)}: {link} leads nowhere"


def main():
    documents = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    problems = [problem for document in documents for problem in broken_links(document)]
    print(*problems, sep="\n")
    return 1 if problems or not documents else 0


if __name__ == "__main__":
    sys.exit(main())
