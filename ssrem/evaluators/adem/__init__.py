"""ADEM (Lowe et al. 2017)."""
