"""Choices on the training sequences beside that of C: the criterion, and the templates."""
