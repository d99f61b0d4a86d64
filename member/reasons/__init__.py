"""What each reason of a condition, or of a command's event, means, and the pages made of that (docs/reasons/)."""
