"""What users command single pods by annotation (lifecycle.md 13). One module per command, each with an `act`."""
