"""What is raised for something that cannot be: the user reads one sentence, and no traceback."""


class Refusal(Exception):
    """Something the user asked for cannot be: one sentence that says what was expected and what to do."""
