"""RUBER (Tao et al. 2018)."""
