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
# None is what cannot be told, because a property that it takes is not known; "or" and "and" hold as far as that allows.
Condition = Callable[[PropertyValues], bool | None]
Number = Callable[[PropertyValues], float | None]

LENGTH_MAX = 500
NUMBER_MAX = 1e15


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
    """A checked expression: after this it holds, does not, or cannot be told, whatever the values. ``names`` are the
    properties that it takes."""

    def __init__(self, text: str, known: Iterable[str], place: str) -> None:
        reader = _Reader(text.strip(), sorted(known), place)
        self._truth = reader.read()
        self.names = frozenset(reader.named)

    def holds(self, properties: PropertyValues) -> bool | None:
        return self._truth(properties)


class _Reader:
    def __init__(self, text: str, known: list[str], place: str) -> None:
        self._text, self._known, self._place = text, known, place
        self.named: set[str] = set()

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
                return _joined(parts, decisive=isinstance(op, ast.Or))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _negated(self._truth(operand))
        raise self._refusal(node, "is no comparison", "compare properties with numbers, as in 'waiting > 50'")

    def _comparison(self, node: ast.Compare) -> Condition:
        numbers = [self._number(part) for part in (node.left, *node.comparators)]
        compares = []
        for op in node.ops:
            if type(op) not in _COMPARISONS:
                raise self._refusal(node, "compares in a way that is not allowed", "use < <= > >= == !=")
            compares.append(_COMPARISONS[type(op)])

        pairs = [_compared(compare, numbers[index], numbers[index + 1]) for index, compare in enumerate(compares)]
        return _joined(pairs, decisive=False)

    def _number(self, node: ast.expr) -> Number:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value) if abs(value) <= NUMBER_MAX:
                constant = float(value)
                return lambda _: constant
            case ast.Name(id=name):
                return self._property(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _combined(operator.sub, lambda _: 0.0, self._number(operand))
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
        self.named.add(name)
        return lambda properties: properties.get(name)

    def _refusal(self, node: ast.expr, what: str, remedy: str) -> UserError:
        shown = ast.get_source_segment(self._text, node) or self._text
        return UserError(f"{self._place}: {shown!r} {what}: {remedy}. Known properties are {', '.join(self._known)}.")


def _joined(parts: list[Condition], *, decisive: bool) -> Condition:
    """One part that is ``decisive`` decides; without one, what cannot be told of a part cannot be told of all."""

    def holds(properties: PropertyValues) -> bool | None:
        answers = [part(properties) for part in parts]
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive

    return holds


def _negated(inner: Condition) -> Condition:
    def holds(properties: PropertyValues) -> bool | None:
        answer = inner(properties)
        return None if answer is None else not answer

    return holds


def _compared(compare: Callable[[float, float], bool], left: Number, right: Number) -> Condition:
    def holds(properties: PropertyValues) -> bool | None:
        first, second = left(properties), right(properties)
        return None if first is None or second is None else compare(first, second)

    return holds


def _combined(operation: Callable[[float, float], float], left: Number, right: Number) -> Number:
    def value(properties: PropertyValues) -> float | None:
        first, second = left(properties), right(properties)
        return None if first is None or second is None else operation(first, second)

    return value
