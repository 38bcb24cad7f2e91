"""Repair, health, backup and restore of a home folder."""
