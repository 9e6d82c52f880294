"""The building blocks of migrations, and the history of replaced ones."""
