"""TensorFlow's SavedModel, read without TensorFlow."""
