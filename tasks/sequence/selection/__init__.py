"""What is chosen on the training sequences beside C: the criterion, and the templates."""
