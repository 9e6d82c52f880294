"""The JSON columns of 0.2.0, as today's code reads them. Only the migrations that lead from 0.2.0 use it."""
