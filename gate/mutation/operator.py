"""What an operator is: a rule that gives, for a node of a syntax tree, the faults that can be planted there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import libcst as cst

Example = tuple[str, str]
Found = Iterator["cst.CSTNode | Text"]


@dataclass(frozen=True)
class Text:
    """A fault given as statements instead of a node.

    Attributes:
        statements: the texts that stand there afterwards, one below the other; those of the file as they are in it.
        upto: the last node that is replaced, where that is a later statement of the same block.
    """

    statements: tuple[str, ...]
    upto: cst.CSTNode | None = None


@dataclass(frozen=True)
class Site:
    """What an operator may know of the place that it looks at.

    Attributes:
        module: the whole file.
        text: gives a node's text as it stands in the file.
        parents: each node's parent.
        functions: the functions around the node, outermost first.
        classes: the classes around it.
    """

    module: cst.Module
    text: Callable[[cst.CSTNode], str]
    parents: Mapping[cst.CSTNode, cst.CSTNode]
    functions: tuple[cst.FunctionDef, ...] = ()
    classes: tuple[cst.ClassDef, ...] = ()

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds it."""
        return self.parents.get(node)

    @cached_property
    def function_text(self) -> str:
        """The innermost function's text, the module's where there is none."""
        return self.text(self.functions[-1]) if self.functions else self.module.code

    @property
    def function_name(self) -> str:
        """The innermost function's name, empty where there is none."""
        return self.functions[-1].name.value if self.functions else ""

    def siblings(self, node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
        """The statements of the block that holds this statement, all of them; empty where it is in none."""
        parent = self.parent(node)
        body = getattr(parent, "body", ())
        return tuple(body) if isinstance(body, (list, tuple)) and node in body else ()


@dataclass(frozen=True)
class Operator:
    """A kind of fault.

    Attributes:
        name: in lower case, with hyphens.
        part: the part of training code that it comes from; "general" for faults of any code.
        description: one line.
        plant: the faults for a node; none for most.
        examples: pairs of a source and what one of its mutants has become.
    """

    name: str
    part: str
    description: str
    plant: Callable[[cst.CSTNode, Site], Found] = field(repr=False)
    examples: tuple[Example, ...] = ()

    @property
    def general(self) -> bool:
        """Whether it fits code of every kind."""
        return self.part == "general"


class Registry:
    """The operators of one part, filled by its `rule` decorators."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.operators: list[Operator] = []

    def rule(self, name: str, description: str, *examples: Example) -> Callable[[Callable[[cst.CSTNode, Site], Found]], Operator]:
        """Makes an operator of the function that follows."""

        def make(plant: Callable[[cst.CSTNode, Site], Found]) -> Operator:
            operator = Operator(name, self.part, description, plant, examples)
            self.operators.append(operator)
            return operator

        return make
