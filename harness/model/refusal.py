"""The exception for impossible requests: the user reads one sentence, and no traceback."""


class Refusal(Exception):
    """The user asked for something impossible: one sentence that says what was expected and what to do."""


class NotAValue(Refusal, TypeError):
    """Something that could be changed, or cannot be written, stands where a value is expected; says what to use."""
