"""The command line as tests call it, a person at a terminal, other Pythons, wheels."""
