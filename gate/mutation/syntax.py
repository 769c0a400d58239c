"""Questions to syntax trees that several operators ask, and small nodes that they make."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

DECAY = re.compile(r"(^|_)(decay|wd|weight_decay|lambda)$|weight_decay|^lambd", re.IGNORECASE)
MOMENTUM = re.compile(r"(^|_)(momentum|beta\d?|rho|mu)$", re.IGNORECASE)
EPS = re.compile(r"^(\w+_)?eps(ilon)?$", re.IGNORECASE)


def name(node: cst.CSTNode | None) -> str:
    """The last part of a name, an attribute, a call or a subscript by text: "beta" for `beta`, `c.beta`, `group["beta"]`."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    if isinstance(node, cst.Call):
        return name(node.func)
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            return str(index.value.evaluated_value)
    return ""


def receiver(node: cst.CSTNode) -> str:
    """The last part of what a method is called on: "optimizer" for `self.optimizer.step()`."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return name(node.func.value)
    return ""


def positional(call: cst.Call) -> list[cst.Arg]:
    """The arguments without keywords or stars."""
    return [arg for arg in call.args if arg.keyword is None and not arg.star]


def keyword(call: cst.Call, *names: str) -> cst.Arg | None:
    """The first argument with one of these keywords."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value in names), None)


def replaced(call: cst.Call, old: cst.Arg, value: cst.BaseExpression) -> cst.Call:
    """The call with another value for one argument."""
    return call.with_changes(args=[arg.with_changes(value=value) if arg is old else arg for arg in call.args])


def statement_call(node: cst.CSTNode) -> cst.Call | None:
    """The call that a line consists of, where it consists of one."""
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        node = node.body[0]
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Await):
        return None
    return node.value if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) else None


def wrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression in parentheses, where it needs them in any place."""
    simple = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float, cst.List, cst.Tuple)
    if isinstance(node, simple) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def negative(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression with the other sign; a sign that it has is taken off."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus) and not node.lpar:
        return node.expression
    return cst.UnaryOperation(cst.Minus(), wrapped(node))


def complement(node: cst.CSTNode) -> cst.BaseExpression | None:
    """x of `1 - x`."""
    if m.matches(node, m.BinaryOperation(left=m.Integer(value="1") | m.Float(value="1.0"), operator=m.Subtract())):
        assert isinstance(node, cst.BinaryOperation)
        return node.right
    return None


def one_minus(node: cst.BaseExpression) -> cst.BaseExpression:
    """`(1 - x)`."""
    inner = cst.BinaryOperation(cst.Integer("1"), cst.Subtract(), wrapped(node))
    return inner.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def nth(index: cst.CSTNode) -> int | None:
    """A whole number, with its sign."""
    if isinstance(index, cst.Integer):
        return int(index.value, 0)
    if isinstance(index, cst.UnaryOperation) and isinstance(index.operator, cst.Minus) and isinstance(index.expression, cst.Integer):
        return -int(index.expression.value, 0)
    return None


def number(value: int) -> cst.BaseExpression:
    """A whole number as an expression."""
    return cst.Integer(str(value)) if value >= 0 else cst.UnaryOperation(cst.Minus(), cst.Integer(str(-value)))


def mentions(text: str, *words: str) -> bool:
    """Whether a text has one of the words, in any case."""
    lower = text.lower()
    return any(word in lower for word in words)


def index_of(items: Sequence[object], item: object) -> int:
    """Where an object itself stands in a sequence; -1 where it does not."""
    return next((place for place, other in enumerate(items) if other is item), -1)
