"""What users of a namespace, data planes and clients cannot do through the operator."""
