"""Cross-encoders: retrieval (Park et al. 2021) and RoBERTa-eval (Zhao et al. 2020)."""
