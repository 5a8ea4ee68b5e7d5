"""One root error. Each message is a sentence that names the thing, the place and the remedy.

Whoever handles an error looks at its type and its evidence, never at its text.
"""


class TidegateError(Exception):
    """Something went wrong and the message says what, where and what to do.

    ``where`` names the place, ``expected`` and ``found`` what should have been there and what was; empty where the
    error is not about a value.
    """

    def __init__(self, sentence: str, *, where: str = "", expected: object = None, found: object = None) -> None:
        super().__init__(sentence)
        self.where, self.expected, self.found = where, expected, found


class UserError(TidegateError):
    """Bad input from the person at the command line or in a configuration: exit status 2."""


class BrokerUnavailableError(TidegateError):
    """No broker answered in time; the same request may succeed later."""


class TooLargeError(BrokerUnavailableError):
    """The control bus never takes this as one message: it has to be smaller, or to be given up."""


class DamagedDocumentError(TidegateError):
    """A document on the control bus is not what the catalogue says it is. ``where`` is its key."""


class SequenceGapError(TidegateError):
    """The log cannot deliver what it promised: a message between two offsets is not there."""


class FencedError(TidegateError):
    """The table's own log says that this slice belongs to somebody else now: write nothing."""
