"""The exception for impossible requests: the user reads one sentence, and no traceback."""


class Refusal(Exception):
    """The user asked for something impossible: one sentence that says what was expected and what to do."""
