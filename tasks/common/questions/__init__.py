"""Questions to whoever knows the answers: the most useful inputs of a pool, and answers learnt one at a time."""
