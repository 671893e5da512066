"""Isolation from histories alone: what clients of logs asked for and got, judged without knowing the system.

`harness.model.log_operations` are judged. `anomalies` says what can be wrong, `columns` keeps what is known of logs.
`judge` looks at the operations one by one; `records`, `order` and `cycles` decide at the end. Each verdict has a proof:
the operations that contradict each other, in an order that a person can follow.
"""
