"""The portal's resources: one module each."""
