"""Orders of the items of sets, by features of items and of pairs of them."""
