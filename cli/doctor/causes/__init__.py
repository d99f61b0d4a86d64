"""The causes, grouped by their signs. Each module has a tuple of them; `cli.doctor.diagnosis` joins the tuples."""
