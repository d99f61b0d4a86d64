"""The page of `kubectl tidb ui`, served on loopback. It needs the extra `ui`.

facts and summaries of `cli.tidb.status` → views (pure) → templates
"""
