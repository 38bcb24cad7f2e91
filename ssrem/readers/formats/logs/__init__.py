"""Logs of chats, channels and threads."""
