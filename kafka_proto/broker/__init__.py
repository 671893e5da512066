"""The broker: an actor that is composed of roles, pure functions of its state, on logs of its own or replicated ones.

`broker` composes; `roles` says what a role and a log are, `parts` what is kept, `messages` what is sent.
A room for each role: `coordinator` (of transactions), `leader` (of partitions), `group`; each has its decisions, a file
for each request, and the `role` that carries them out. `versions` lists what each release decides. `logs`, and the
`controller` that elects leaders of those that are replicated. `other_brokers`, `look_ups`, `placement`.
"""
