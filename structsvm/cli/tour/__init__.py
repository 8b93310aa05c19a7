"""The demo without a task: each family of structures, trained in a second or two, in one table and one picture."""
