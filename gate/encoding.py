"""Python sources, read as Python reads them: by their byte order mark or coding cookie; what it cannot read is a SyntaxError."""

from __future__ import annotations

import ast
import io
import tokenize
from contextlib import suppress
from pathlib import Path

from gate.errors import UsageError

DEEP = "is nested too deeply, or too long for one expression"
Failures = (SyntaxError, ValueError, RecursionError, MemoryError)  # of what parses or compiles
_SPACE = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)


def of(content: bytes) -> str:
    """The encoding of a source; "utf-8-sig" with a byte order mark. Raises SyntaxError for one that nobody knows."""
    return tokenize.detect_encoding(io.BytesIO(content).readline)[0]


def strict(content: bytes) -> str:
    """A source as text, line ends as they are. Raises SyntaxError."""
    try:
        return content.decode(of(content))
    except UnicodeDecodeError as error:
        raise SyntaxError(str(error), (None, content[: error.start].count(b"\n") + 1, None, None)) from None


def text(content: bytes) -> str:
    """A source as text; one that Python cannot decode with lone surrogates, which parse no more than it does."""
    try:
        return strict(content)
    except SyntaxError:
        return content.decode("utf-8", "surrogateescape")


def mutable(root: Path, file: str) -> str:
    """The text of a source that Python can compile, lines ended by "\\n" alone.

    Raises:
        UsageError: it cannot; names file and line.
    """
    content = (root / file).read_bytes()
    try:
        found = strict(content)
        compile(content, file, "exec", dont_inherit=True)
    except Failures as error:
        raise UsageError(told(file, text(content), error)) from None
    return io.StringIO(found, newline=None).read()


def told(file: str, source: str, error: BaseException) -> str:
    """Which line of a source cannot be parsed or compiled, why, and what to do."""
    line, why = place(source, error)
    return f"{file}:{line}: does not parse: {why}. Correct that line."


def place(source: str, error: BaseException) -> tuple[int, str]:
    """The line of an error of `Failures`, and what it says; where it is too deep, that of what is deepest or longest."""
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno, error.msg
    if isinstance(error, (SyntaxError, ValueError)):  # a null character, a lone surrogate, an encoding that nobody knows
        wrong = next((at for at, letter in enumerate(source) if letter == "\0" or "\ud800" <= letter <= "\udfff"), 0)
        why = "it is not in the encoding that it says" if isinstance(error, UnicodeError) else str(error)
        return source.count("\n", 0, wrong) + 1, why
    parsed = tree(source)
    return _deepest(parsed) if parsed else _longest(source), DEEP


def tree(source: str | bytes) -> ast.Module | None:
    """The syntax tree of a source; None where Python cannot parse it."""
    try:
        return ast.parse(source)
    except Failures:
        return None


def _deepest(parsed: ast.Module) -> int:
    """The line of what most is around."""
    level: list[ast.AST] = [parsed]
    line = 1
    while level:
        line = next((node.lineno for node in level if isinstance(node, (ast.stmt, ast.expr))), line)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return line


def _longest(source: str) -> int:
    """The first line of the statement with the most tokens."""
    sizes: dict[int, int] = {}
    begin = 0
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in _SPACE:
                begin = begin or token.start[0]
                sizes[begin] = sizes.get(begin, 0) + 1
            begin = 0 if token.type == tokenize.NEWLINE else begin
    return max(sizes, key=lambda line: sizes[line], default=1)
