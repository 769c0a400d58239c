"""Sources of a log of provenance in one normal form, however they are written: addresses, papers of arXiv, DOIs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

_SCHEME = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:[^\s/@]*@)?"
_HOST = r"(?P<host>[\w-]+(?:\.[\w-]+)+)(?P<rest>(?::\d+)?(?:[/?#][^\s<>\]`|\"]*)?)"
_URL = re.compile(rf"(?:{_SCHEME}|(?<![\w./@-])(?=(?:[\w-]+\.)+[A-Za-z]{{2,}}(?![\w.-]))){_HOST}")
_PAPER = r"(?P<id>\d{4}\.\d{4,5}|[A-Za-z-]+(?:\.[A-Za-z]{2})?/\d{7})(?:v\d+)?(?!\d)"
_ARXIV = re.compile(rf"\barXiv\s*[:.]?\s*(?:preprint\s+)?(?:arXiv\s*:\s*)?{_PAPER}", re.IGNORECASE)
_ARXIV_PATH = re.compile(rf"/(?:abs|pdf|html|format|ps|src|e-print)/{_PAPER}(?:\.pdf)?$", re.IGNORECASE)
_DOI = re.compile(r"(?<![\w./])10\.\d{4,9}/[^\s<>\]`|\"]+")
_DOI_PATH = re.compile(r"(?:^|/doi)/(?:(?:abs|full|pdf|epdf|book)/)?(?P<doi>10\.\d{4,9}/.+)", re.IGNORECASE)
_OF_ARXIV = re.compile(rf"10\.48550/arxiv\.{_PAPER}", re.IGNORECASE)


def marks(text: str) -> frozenset[str]:
    """What tells a source: its words (C, C++ and C# are three), and every address, paper and DOI in it, each in one form.

    `http://www.example.org/a/`, `https://EXAMPLE.org/a#b` and `example.org/a` are one address; `arXiv:2001.01234`, its versions, its URLs
    and its DOI are one paper; `10.1000/xyz` and `https://doi.org/10.1000/XYZ` are one DOI.
    """
    words = " ".join(re.findall(r"\w+[+#]*", text.casefold()))
    addresses = [found for match in _URL.finditer(text) if (found := _address(match))]
    papers = [_paper(match) for match in _ARXIV.finditer(text)]
    return frozenset([f"words {words}", *addresses, *papers, *(_doi(match[0]) for match in _DOI.finditer(text))])


def _address(match: re.Match[str]) -> str | None:
    host = match["host"].lower().removeprefix("www.")
    rest = re.sub(r"^:(?:80|443)(?!\d)", "", _ended(match["rest"].partition("#")[0])).rstrip("/")
    if match["scheme"] is None and not (rest or match["host"].lower().startswith("www.")):
        return None  # a name with a dot in it, as torch.optim
    path = unquote(rest)
    paper = _ARXIV_PATH.search(path.partition("?")[0].rstrip("/")) if host == "arxiv.org" or host.endswith(".arxiv.org") else None
    if paper:
        return _paper(paper)
    doi = _DOI_PATH.search(path) if host in ("doi.org", "dx.doi.org") or "/doi/" in path.lower() else None
    return _doi(doi["doi"]) if doi else f"address {host}{path}"


def _paper(match: re.Match[str]) -> str:
    return f"arxiv {re.sub(r'[.][a-z]+/', '/', match['id'].casefold())}"  # math.GT/0309136 is math/0309136


def _doi(text: str) -> str:
    name = _ended(unquote(text.partition("#")[0]).partition("?")[0]).rstrip("/").casefold()
    paper = _OF_ARXIV.fullmatch(name)
    return _paper(paper) if paper else f"doi {name}"


def _ended(text: str) -> str:
    """Without what belongs to the sentence around it: a bracket that was opened before it, and marks at its end."""
    return _balanced(text).rstrip(".,;:!?'*")


def _balanced(text: str) -> str:
    depths = _depths(text)
    return next((text[:index] for index, depth in enumerate(depths) if depth < 0), text)


def _depths(text: str) -> Iterator[int]:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        yield depth
