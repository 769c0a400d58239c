"""Finds every place of a source where an operator can plant a fault."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

from gate import encoding
from gate.errors import UsageError
from gate.mutation.mutant import Mutant, lines_of
from gate.mutation.operator import Operator, Site, Text
from gate.mutation.syntax import name

_TIGHT = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget, cst.BooleanOperation, cst.Attribute, cst.Await)
_LOOSE = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.BooleanOperation, cst.IfExp, cst.Lambda)
_HIDING = ("jit", "compile", "script", "trace", "custom_op", "register_fake")
_SPARE = "assigned-none"  # where a function would have no mutant at all
_HIDDEN = ("backward", "jvp", "vmap")


def plant(file: str, source: str, operators: Sequence[Operator]) -> list[Mutant]:
    """All mutants of a source, in the order of its lines; where two operators give the same text, the first one has it.

    Args:
        file: the name that the mutants get.
        source: the whole file.
        operators: in the order of their claims.

    Raises:
        UsageError: it does not parse.
    """
    try:
        made = list(_Walk(file, source, operators).mutants())
    except cst.ParserSyntaxError as error:
        raise UsageError(f"{file}:{error.raw_line}: does not parse: {error.message}. Correct it.") from None
    except (RecursionError, KeyError) as error:  # LibCST goes less deep than Python, and then misses what it had not got to
        deep = _deep(error)
        if deep is None:
            raise
        line, why = encoding.place(source, deep)
        raise UsageError(f"{file}:{line}: {why}, to plant faults in the file. Divide it, or name other files.") from None
    found: dict[tuple[int, int, str], Mutant] = {}
    for mutant in made:
        found.setdefault((mutant.line, mutant.end, mutant.after), mutant)
    seen: dict[tuple[object, ...], Mutant] = {}
    plain = _does(source)
    for mutant in found.values():
        does = _does(mutant.apply(source))
        if does is not None and does != plain:
            seen.setdefault(does, mutant)
    scopes = {mutant.scope for mutant in seen.values() if mutant.operator != _SPARE}
    seen = {does: mutant for does, mutant in seen.items() if mutant.operator != _SPARE or mutant.scope not in scopes}
    return sorted(seen.values(), key=lambda mutant: (mutant.line, mutant.end))


def _deep(error: BaseException | None) -> RecursionError | None:
    """The error of a recursion that another one comes from."""
    while error is not None and not isinstance(error, RecursionError):
        error = error.__context__
    return error


def _does(source: str) -> tuple[object, ...] | None:
    """What a source compiles to, without its line numbers; None for what does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _work(compile(source, "mutant", "exec", dont_inherit=True))
        except encoding.Failures:
            return None


def _work(code: types.CodeType) -> tuple[object, ...]:
    consts = tuple(_work(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_flags, consts


@dataclass(frozen=True)
class _Around:
    """What is around a node on the way down to it."""

    site: Site
    scope: tuple[str, ...] = ()
    loaded: bool = True
    hidden: bool = False
    statement: cst.CSTNode | None = None


class _Walk:
    """One pass over a file."""

    def __init__(self, file: str, source: str, operators: Sequence[Operator]) -> None:
        wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
        self.file, self.source, self.operators = file, source, operators
        self.module = wrapper.module
        self.positions: Mapping[cst.CSTNode, CodeRange] = wrapper.resolve(PositionProvider)
        self.parents: Mapping[cst.CSTNode, cst.CSTNode] = wrapper.resolve(ParentNodeProvider)
        self.lines = lines_of(source)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def mutants(self) -> Iterator[Mutant]:
        yield from self._visit(self.module, _Around(Site(self.module, self.text, self.parents)))

    def text(self, node: cst.CSTNode) -> str:
        """A node as it stands in the file."""
        if node not in self.positions:
            return self.module.code_for_node(node)
        start, end = self._span(node)
        return self.source[start:end]

    def _span(self, node: cst.CSTNode) -> tuple[int, int]:
        where = self.positions[node]
        return self.starts[where.start.line - 1] + where.start.column, self.starts[where.end.line - 1] + where.end.column

    def _visit(self, node: cst.CSTNode, around: _Around) -> Iterator[Mutant]:
        if _left_out(node, self.text):
            return
        if isinstance(node, (cst.BaseStatement, cst.Decorator, cst.ExceptHandler)):
            around = replace(around, statement=node)
        for operator in self.operators:
            for fault in operator.plant(node, around.site):
                mutant = self._mutant(operator, node, fault, around)
                if mutant is not None:
                    yield mutant
        for child in node.children:
            yield from self._visit(child, _below(node, child, around, self.text))

    def _mutant(self, operator: Operator, node: cst.CSTNode, fault: cst.CSTNode | Text, around: _Around) -> Mutant | None:
        start, end = self._span(node)
        if isinstance(fault, Text):
            indent = " " * self.positions[node].start.column
            code = f"\n{indent}".join(fault.statements)
            end = self._span(fault.upto)[1] if fault.upto is not None else end
        else:
            code = self._code(node, fault)
        if code == self.source[start:end]:
            return None
        first, last = self._line(start), self._line(max(start, end - 1))
        before = self.source[self.starts[first - 1] : self.starts[last]]
        after = self.source[self.starts[first - 1] : start] + code + self.source[end : self.starts[last]]
        hits = self._hits(around.statement or node)
        scope = ".".join(around.scope)
        return Mutant(
            self.file, first, last, operator.name, before.rstrip("\r\n"), after.rstrip("\r\n"), hits, scope, around.loaded, around.hidden
        )

    def _code(self, node: cst.CSTNode, fault: cst.CSTNode) -> str:
        code = self.module.code_for_node(fault)
        parent = self.parents.get(node)
        bare = isinstance(fault, _LOOSE) and not fault.lpar
        tight = isinstance(parent, _TIGHT) or (
            isinstance(parent, (cst.Call, cst.Subscript)) and node in (getattr(parent, "func", None), getattr(parent, "value", None))
        )
        same = type(fault) is type(node) and getattr(fault, "operator", None) is not None and not getattr(node, "lpar", ())
        kept = same and type(getattr(fault, "operator", None)) is type(getattr(node, "operator", None))
        return f"({code})" if bare and tight and not kept else code

    def _line(self, offset: int) -> int:
        low, high = 0, len(self.lines)
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle)
        return low + 1

    def _hits(self, statement: cst.CSTNode) -> tuple[int, int]:
        """The lines of a statement; of one with a block, those of its head."""
        where = self.positions[statement]
        body = getattr(statement, "body", None)
        if isinstance(body, cst.IndentedBlock):
            return where.start.line, max(where.start.line, self.positions[body.body[0]].start.line - 1) if body.body else where.start.line
        return where.start.line, where.end.line


def _below(node: cst.CSTNode, child: cst.CSTNode, around: _Around, text: Callable[[cst.CSTNode], str]) -> _Around:
    if isinstance(node, cst.FunctionDef) and child is node.body:
        site = replace(around.site, functions=(*around.site.functions, node))
        marks = [text(d.decorator).split("(")[0].split(".")[-1] for d in node.decorators]
        hides = node.name.value in _HIDDEN or any(mark in _HIDING for mark in marks)
        return replace(around, site=site, scope=(*around.scope, node.name.value), loaded=False, hidden=around.hidden or hides)
    if isinstance(node, cst.ClassDef) and child is node.body:
        site = replace(around.site, classes=(*around.site.classes, node))
        return replace(around, site=site, scope=(*around.scope, node.name.value))
    return around


def _left_out(node: cst.CSTNode, text: Callable[[cst.CSTNode], str]) -> bool:
    """What no fault is planted in: annotations, imports, blocks for type checkers, overloads, what only scripts run."""
    if isinstance(node, (cst.Annotation, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal, cst.TypeAlias)):
        return True
    if isinstance(node, cst.If):
        tested = text(node.test)
        return tested.split(".")[-1] == "TYPE_CHECKING" or "__name__" in tested
    if isinstance(node, cst.FunctionDef):
        return any(name(d.decorator) == "overload" for d in node.decorators)
    if isinstance(node, cst.ClassDef):
        return any(name(base.value) == "Protocol" or text(base.value).startswith("Protocol[") for base in node.bases)
    if isinstance(node, cst.Assign):
        return any(name(t.target) in ("__all__", "__slots__") for t in node.targets) or text(node.value).startswith(
            ("TypeVar(", "NewType(")
        )
    return isinstance(node, cst.Subscript) and name(node.value) in ("Literal", "Callable", "Union", "Optional")
