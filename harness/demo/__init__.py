"""The interactive demo: a live cluster that a person steps, injects faults into, rewinds and branches.

`session` is the run that is shown, with all that there is to see of it as JSON; it knows neither HTTP nor trio. `web`
and `terminal` show it, in a page and in a terminal, and know nothing of each other.
"""
