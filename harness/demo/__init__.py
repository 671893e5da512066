"""The interactive demo: a live cluster that a person steps, hurts, rewinds and branches, in a page or a terminal.

Rooms: `opened` (what is shown: a model, a scenario, a trail), `session` (one interactive run; knows no HTTP and no
trio), `branches` (what was done and may be done again), `in_flight` (messages under way), `running` (a strategy decides
for a while), `told` (all of it as JSON). `live` hosts a session on trio, `server` is the web around it.
"""
