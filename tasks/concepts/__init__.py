"""Words of sentences labelled with the concepts of a world that they refer to: network, model, `ConceptLabeler`."""
