"""Forests of decision trees: XGBoost and LightGBM, which Triton's FIL backend serves."""
