"""Expressions over the loop's properties: ``head_age_s > 1.5 and waiting > 50``.

Read once with Python's own grammar and checked against a short list of what may stand in them: comparisons, ``and``,
``or``, ``not``, ``+ - * /``, numbers and known names. What passes is turned into closures, so nothing is ever
evaluated as code.
"""

import ast
import difflib
import math
import operator
from collections.abc import Callable, Iterable, Mapping

from tidegate.model.errors import UserError

PropertyValues = Mapping[str, float]
Condition = Callable[[PropertyValues], bool]
Number = Callable[[PropertyValues], float]

LENGTH_MAX = 500


def _divide(left: float, right: float) -> float:
    """A rate over nothing is without bound; nothing over nothing is nothing."""
    if right != 0:
        return left / right
    return 0.0 if left == 0 else math.copysign(math.inf, left)


_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class Expression:
    """A checked expression: after this it holds or does not, whatever the values."""

    def __init__(self, text: str, known: Iterable[str], place: str) -> None:
        self._truth = _Reader(text.strip(), sorted(known), place).read()

    def holds(self, properties: PropertyValues) -> bool:
        return self._truth(properties)


class _Reader:
    def __init__(self, text: str, known: list[str], place: str) -> None:
        self._text, self._known, self._place = text, known, place

    def read(self) -> Condition:
        if len(self._text) > LENGTH_MAX:
            raise UserError(f"{self._place} is longer than {LENGTH_MAX} characters: shorten it.")
        try:
            tree = ast.parse(self._text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise UserError(
                f"{self._place} is {self._text!r}, which is no expression: write one like 'head_age_s > 1.5'."
            ) from None
        return self._truth(tree.body)

    def _truth(self, node: ast.expr) -> Condition:
        match node:
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp(op=op, values=values):
                parts = [self._truth(value) for value in values]
                if isinstance(op, ast.And):
                    return lambda properties: all(part(properties) for part in parts)
                return lambda properties: any(part(properties) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._truth(operand)
                return lambda properties: not inner(properties)
        raise self._refusal(node, "is no comparison", "compare properties with numbers, as in 'waiting > 50'")

    def _comparison(self, node: ast.Compare) -> Condition:
        numbers = [self._number(part) for part in (node.left, *node.comparators)]
        compares = []
        for op in node.ops:
            if type(op) not in _COMPARISONS:
                raise self._refusal(node, "compares in a way that is not allowed", "use < <= > >= == !=")
            compares.append(_COMPARISONS[type(op)])

        def holds(properties: PropertyValues) -> bool:
            values = [number(properties) for number in numbers]
            return all(compare(values[index], values[index + 1]) for index, compare in enumerate(compares))

        return holds

    def _number(self, node: ast.expr) -> Number:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value):
                constant = float(value)
                return lambda _: constant
            case ast.Name(id=name):
                return self._property(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._number(operand)
                return lambda properties: -inner(properties)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _combined(_ARITHMETIC[type(op)], self._number(left), self._number(right))
        raise self._refusal(node, "may not stand there", "use numbers, + - * / and the names of properties")

    def _property(self, name: str) -> Number:
        if name not in self._known:
            near = difflib.get_close_matches(name, self._known, n=1, cutoff=0.5)
            remedy = f"did you mean {near[0]}? " if near else ""
            raise UserError(
                f"{self._place} names {name}, which is no property: {remedy}Known are {', '.join(self._known)}."
            )
        return lambda properties: float(properties[name])

    def _refusal(self, node: ast.expr, what: str, remedy: str) -> UserError:
        shown = ast.get_source_segment(self._text, node) or self._text
        return UserError(f"{self._place}: {shown!r} {what}: {remedy}. Known properties are {', '.join(self._known)}.")


def _combined(operation: Callable[[float, float], float], left: Number, right: Number) -> Number:
    return lambda properties: operation(left(properties), right(properties))
