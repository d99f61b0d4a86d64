"""The meaning of each reason of a condition, or of a command's event, and the pages about them (docs/reasons/)."""
