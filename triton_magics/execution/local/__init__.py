"""Runs jobs in local worker processes: supervisor, fork servers, worker pool."""
