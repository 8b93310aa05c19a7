"""Label sequences: `SequenceLabeler`."""
