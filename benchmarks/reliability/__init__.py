"""Campaigns against files, interruptions and memory."""
