"""One root error. Each message is a sentence that names the thing, the place and the remedy."""


class TidegateError(Exception):
    """Something went wrong and the message says what, where and what to do."""


class UserError(TidegateError):
    """Bad input from the person at the command line or in a configuration: exit status 2."""


class BrokerUnavailableError(TidegateError):
    """No broker answered in time; the same request may succeed later."""


class SequenceGapError(TidegateError):
    """The log cannot deliver what it promised: a message between two offsets is not there."""


class FencedError(TidegateError):
    """The table's own log says that this slice belongs to somebody else now: write nothing."""
