"""The process: flags, logs, leader election, wiring, health and metrics over HTTP, an orderly shutdown."""
