"""The learning loop of label sequences: pools of sentences, and models that grow with the answers."""
