"""Kills, full disks, damaged files and wrong clocks, and what a home folder is afterwards."""
