"""The k best outputs, and the best one under many rules."""
