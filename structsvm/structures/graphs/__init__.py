"""Graphs whose nodes are labelled: how they are stored and checked, orders in which nodes are eliminated."""
