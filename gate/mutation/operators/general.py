"""Faults of any code: comparisons, arithmetic, conditions, constants, statements, returned values, arguments."""

from __future__ import annotations

import libcst as cst

from gate.mutation.operator import Found, Registry, Site, Text
from gate.mutation.syntax import name, positional, statement_call, wrapped

GENERAL = Registry("general")

_EDGES: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.LessThan,
    cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan,
}
_OPPOSITES: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
}
_ARITHMETIC: dict[type[cst.BaseBinaryOp], type[cst.BaseBinaryOp]] = {
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.Divide,
    cst.Divide: cst.Multiply,
    cst.FloorDivide: cst.Multiply,
    cst.Modulo: cst.FloorDivide,
    cst.Power: cst.Multiply,
    cst.LeftShift: cst.RightShift,
    cst.RightShift: cst.LeftShift,
    cst.BitAnd: cst.BitOr,
    cst.BitOr: cst.BitAnd,
    cst.BitXor: cst.BitAnd,
}
_AUGMENTED: dict[type[cst.BaseAugOp], type[cst.BaseAugOp]] = {
    cst.AddAssign: cst.SubtractAssign,
    cst.SubtractAssign: cst.AddAssign,
    cst.MultiplyAssign: cst.DivideAssign,
    cst.DivideAssign: cst.MultiplyAssign,
    cst.BitOrAssign: cst.BitAndAssign,
    cst.BitAndAssign: cst.BitOrAssign,
}
_EITHER_WAY = ("cast", "max", "min", "promote_types", "equal", "allclose", "array_equal", "maximum", "minimum", "gcd", "lcm", "hypot")
_PLAIN = ("isinstance", "issubclass", "TypeVar", "getattr", "hasattr")
_NOTHING = ("None", "False", "0", "0.0", '""', "[]", "()", "{}")  # a caller that asks whether it is true sees no difference
_LOGGING = ("log", "logger", "logging", "warnings", "print")


@GENERAL.rule("comparison-edge", "the edge of an order goes to the other side", ("a < b", "a <= b"), ("a >= b", "a > b"))
def _comparison_edge(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Comparison):
        yield from _compared(node, _EDGES)


@GENERAL.rule("comparison-opposite", "an equality, identity or membership is negated", ("a == b", "a != b"), ("a in b", "a not in b"))
def _comparison_opposite(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Comparison):
        yield from _compared(node, _OPPOSITES)


def _compared(node: cst.Comparison, table: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]]) -> Found:
    for place, target in enumerate(node.comparisons):
        other = table.get(type(target.operator))
        if other is not None:
            changed = target.with_changes(operator=other())
            yield node.with_changes(comparisons=[*node.comparisons[:place], changed, *node.comparisons[place + 1 :]])


@GENERAL.rule("arithmetic", "an operation becomes its counterpart", ("c = a + b", "c = a - b"), ("c = a // b", "c = a * b"))
def _arithmetic(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.BinaryOperation):
        other = _ARITHMETIC.get(type(node.operator))
        text = isinstance(node.left, (cst.SimpleString, cst.FormattedString)) or isinstance(
            node.right, (cst.SimpleString, cst.FormattedString)
        )
        if other is not None and not text:
            yield node.with_changes(operator=other())


@GENERAL.rule("augmented", "an assignment with an operation takes the counterpart", ("a += b", "a -= b"))
def _augmented(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.AugAssign):
        other = _AUGMENTED.get(type(node.operator))
        if other is not None:
            yield node.with_changes(operator=other())


@GENERAL.rule("boolean", "and becomes or, or becomes and", ("a and b", "a or b"))
def _boolean(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.BooleanOperation):
        yield node.with_changes(operator=cst.Or() if isinstance(node.operator, cst.And) else cst.And())


@GENERAL.rule("not-dropped", "a negation is dropped", ("b = not a", "b = a"))
def _not_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        yield node.expression


@GENERAL.rule(
    "condition-negated", "a condition is negated", ("if a:\n    b()", "if not a:\n    b()"), ("c = b if a else d", "c = b if not a else d")
)
def _condition_negated(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    tested = isinstance(parent, (cst.If, cst.While, cst.IfExp)) and parent.test is node
    if tested and isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.BooleanOperation, cst.Subscript)):
        yield cst.UnaryOperation(cst.Not(), wrapped(node))


@GENERAL.rule("number", "a whole number is one more", ("a = 3", "a = 4"))
def _number(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Integer) and not _is_rest(node, site):
        yield cst.Integer(str(int(node.value, 0) + 1))


def _is_rest(node: cst.Integer, site: Site) -> bool:
    """Whether it is the -1 of `x.reshape(-1)`, where every negative number says the same."""
    sign = site.parent(node)
    arg = site.parent(sign) if isinstance(sign, cst.UnaryOperation) else None
    call = site.parent(arg) if isinstance(arg, (cst.Arg, cst.Element)) else None
    while isinstance(call, (cst.Tuple, cst.Arg)):
        call = site.parent(call)
    return isinstance(call, cst.Call) and name(call) in ("reshape", "view", "unflatten", "expand")


@GENERAL.rule("truth", "True and False change places", ("f(True)", "f(False)"))
def _truth(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    strict = isinstance(parent, cst.Arg) and parent.keyword is not None and parent.keyword.value == "strict"
    if isinstance(node, cst.Name) and node.value in ("True", "False") and not strict:  # strict=True of zip only guards our own mistakes
        yield cst.Name("False" if node.value == "True" else "True")


@GENERAL.rule(
    "statement-dropped", "a call, an assignment to a part, a deletion or a raise is dropped", ("f(a)", "pass"), ("a.b = c", "pass")
)
def _statement_dropped(node: cst.CSTNode, site: Site) -> Found:
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return
    only = node.body[0]
    call = statement_call(node)
    if call is not None and site.text(call.func).split(".")[0] in _LOGGING:
        return
    parts = isinstance(only, cst.Assign) and all(_is_part(target.target) for target in only.targets)
    if call is not None or parts or isinstance(only, (cst.AugAssign, cst.Del, cst.Raise)):
        yield Text(("pass",))


def _is_part(target: cst.CSTNode) -> bool:
    """Whether something is assigned to a part of an object that goes on without it, or to several."""
    if isinstance(target, cst.Tuple):
        return all(_is_part(element.value) for element in target.elements)
    return isinstance(target, (cst.Attribute, cst.Subscript))


@GENERAL.rule(
    "assigned-none",
    "in a function that no other operator has a place in, what is assigned is None",
    ("def f():\n    a = b", "def f():\n    a = None"),
)
def _assigned_none(node: cst.CSTNode, site: Site) -> Found:
    if site.functions and isinstance(node, cst.Assign) and all(isinstance(target.target, cst.Name) for target in node.targets):
        yield node.with_changes(value=cst.Name("None"))


@GENERAL.rule("returned-none", "what is returned becomes None", ("def f():\n    return a", "def f():\n    return None"))
def _returned_none(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Return) and node.value is not None and site.text(node.value) not in _NOTHING:
        yield node.with_changes(value=cst.Name("None"), whitespace_after_return=cst.SimpleWhitespace(" "))


@GENERAL.rule("yield-dropped", "a value that is yielded becomes None", ("def f():\n    yield a", "def f():\n    yield None"))
def _yield_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Yield) and node.value is not None and not isinstance(node.value, cst.From):
        yield node.with_changes(value=cst.Name("None"), whitespace_after_yield=cst.SimpleWhitespace(" "))


@GENERAL.rule("arguments-swapped", "the first two arguments of a call change places", ("f(a, b)", "f(b, a)"))
def _arguments_swapped(node: cst.CSTNode, site: Site) -> Found:
    if not isinstance(node, cst.Call):
        return
    given = positional(node)
    if len(given) < 2 or node.args[0] is not given[0] or node.args[1] is not given[1]:
        return
    one, two = given[0], given[1]
    called = site.text(node.func)
    if site.text(one.value) == site.text(two.value) or called.rpartition(".")[2] in _EITHER_WAY or called in _PLAIN:
        return
    yield node.with_changes(args=[one.with_changes(value=two.value), two.with_changes(value=one.value), *node.args[2:]])


@GENERAL.rule("jump", "break and continue change places", ("for a in b:\n    break", "for a in b:\n    continue"))
def _jump(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Break):
        yield cst.Continue()
    if isinstance(node, cst.Continue):
        yield cst.Break()


@GENERAL.rule(
    "decorator-dropped", "a decorator is dropped", ("@cache\ndef f():\n    return a", "# decorator dropped\ndef f():\n    return a")
)
def _decorator_dropped(node: cst.CSTNode, site: Site) -> Found:
    plain = ("property", "staticmethod", "classmethod", "abstractmethod", "overload", "dataclass", "override", "final")
    if isinstance(node, cst.Decorator):
        called = site.text(node.decorator).split("(")[0].split(".")[-1]
        parent = site.parent(node)
        if called not in plain and isinstance(parent, (cst.FunctionDef, cst.ClassDef)):
            yield Text(("# decorator dropped",))
