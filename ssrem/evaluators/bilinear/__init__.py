"""SSREM and RSREM: f from V(c)ᵀ M V(r), with a V that stays as it is or learns too (Bak and Oh 2020)."""
