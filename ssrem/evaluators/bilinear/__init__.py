"""SSREM and RSREM: f = tanh(V(c)ᵀ M V(r)) (Bak and Oh 2020)."""
