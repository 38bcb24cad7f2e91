"""Readers of chats that people export, and of the Switchboard corpus."""
