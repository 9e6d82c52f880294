"""MLflow 3: its REST, its model folders, and what a version takes over from them."""
