"""The transaction coordinator: what it keeps, a file of decisions per request or event, and the role that runs them.

A decision is a pure function of the transaction that the coordinator has in its cache and of a request. It refuses, or
says what is to be appended to the transaction log, what is answered once that is done, and whether markers follow.
"""
