"""The causes, by where their signs are. Each module has a tuple of them, which `cli.doctor.diagnosis` joins."""
